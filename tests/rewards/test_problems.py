"""The problems of the dataset benchmarks: from a folder, from the hub, and the real data."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conf.sections.benchmark import ExamPart
from rewards.competition_math import SUBJECTS
from rewards.data.benchmarks import configured, load
from rewards.verifier import Attempt, Split
from tests.rewards.datasets import GSM8K, HUMANEVAL, MATH, MBPP, TRIVIAQA, needs_data, write_rows

SPLITS: tuple[Split, Split] = ("train", "test")


@dataclass(frozen=True)
class Dataset:
    """A benchmark's data: file and split, a good row and its id, and changes that make it unusable, with the reason."""

    file: str
    row: dict[str, Any]
    problem_id: str
    unusable: dict[str, dict[str, Any]]
    hub: list[tuple[str, str | None, str]]
    split: Split = "train"


NOT_PYTHON = "not Python"
DATASETS = {
    "gsm8k": Dataset(
        "train.jsonl",
        GSM8K,
        "gsm8k/train/0",
        {"does not end in": {"answer": "many"}, "`#### <number>`": {"answer": "#### 5 or 6"}},
        [("openai/gsm8k", "main", "train")],
    ),
    "math": Dataset(
        "train.jsonl",
        MATH,
        "math/train/algebra/",
        {
            "no answer in a box": {"problem": "one", "solution": "5"},
            "its solution has": {"problem": "two", "solution": r"\boxed{}"},
            "answer": {"problem": "three", "solution": r"\boxed{5"},
        },
        [("EleutherAI/hendrycks_math", subject, "train") for subject in SUBJECTS],
    ),
    "mbpp": Dataset(
        "mbpp.jsonl",
        MBPP,
        "mbpp/601",
        {
            "it has no tests": {"task_id": 700, "test_list": [], "challenge_test_list": []},
            "some that are not text": {"task_id": 701, "test_list": [1]},
            "its reference or its tests are not Python": {"task_id": 702, "code": "def add_one(x:"},
            NOT_PYTHON: {"task_id": 703, "test_list": ["assert add_one(1) =="]},
            "invalid syntax": {"task_id": 704, "test_setup_code": "root = Node(]"},
            "call nothing that its reference defines": {"task_id": 705, "code": "def add_two(x):\n    return x + 2"},
        },
        [("google-research-datasets/mbpp", "full", "train")],
    ),
    "humaneval": Dataset(
        "HumanEval.jsonl",
        HUMANEVAL,
        "humaneval/38",
        {
            "its prompt does not define code": {"task_id": "HumanEval/0", "entry_point": "code"},
            NOT_PYTHON: {"task_id": "HumanEval/1", "test": "def check(candidate:"},
            "its prompt or its test": {"task_id": "HumanEval/2", "prompt": f"import\n{HUMANEVAL['prompt']}"},
        },
        [("openai/openai_humaneval", None, "test")],
        split="test",
    ),
    "triviaqa": Dataset(
        "test.jsonl",
        TRIVIAQA,
        "triviaqa/test/tc_2",
        {
            "it has no answer": {"question_id": "a", "answer": {"aliases": []}},
            "no answer": {"question_id": "b", "answer": {"aliases": [""], "value": None}},
        },
        [("mandarjoshi/trivia_qa", "rc.nocontext", "validation")],
        split="test",
    ),
}
EACH = pytest.mark.parametrize("name", DATASETS)


@EACH
def test_a_row_of_a_folder_is_a_problem(tmp_path: Path, name: str) -> None:
    data = DATASETS[name]
    benchmark = configured(ExamPart(benchmark=name, source=write_rows(tmp_path / data.file, data.row)))
    [problem] = benchmark.problems(data.split)
    assert problem.problem_id.startswith(data.problem_id)
    assert (problem.benchmark, benchmark.kind(problem)) == (name, problem.problem_id)
    assert benchmark.draw("any", 5) == [problem] if data.split == "train" else data.split in benchmark.splits
    assert benchmark.excluded == {data.split: []}


@EACH
def test_problems_with_an_unusable_truth_are_named(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    data = DATASETS[name]
    rows = [data.row | change for change in data.unusable.values()]
    source = write_rows(tmp_path / data.file, *rows[1:], data.row, rows[0])
    benchmark = configured(ExamPart(benchmark=name, source=source))
    [problem] = benchmark.problems(data.split)
    assert problem.problem_id.startswith(data.problem_id.rpartition("/")[0])
    excluded = benchmark.excluded[data.split]
    assert len(set(excluded)) == len(rows)
    assert problem.problem_id not in excluded
    assert all(f"{each} is excluded: " in caplog.text for each in excluded)
    assert all(reason in caplog.text for reason in data.unusable)
    assert f"{name}: {len(rows)} of {len(rows) + 1} {data.split} problems are excluded" in caplog.text
    assert {record.name for record in caplog.records} == {"nightschool"}  # the logger that writes the night's log


@EACH
def test_without_a_folder_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    data, asked = DATASETS[name], []

    def load_dataset(*where: str | None, **what: str | None) -> list[dict[str, Any]]:
        asked.append((*where, what["split"], what["revision"]))
        return [data.row]

    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    for _ in range(2):  # the second time, nothing is read again
        [problem, *_] = configured(ExamPart(benchmark=name, revision="abc")).problems(data.split)
    assert problem.problem_id.startswith(data.problem_id)
    assert asked == [(*where, "abc") for where in data.hub]


def test_a_change_of_the_files_does_not_reach_a_running_night(tmp_path: Path) -> None:
    """Each stage of a night creates the benchmark anew, or gets it from another process."""
    data = DATASETS["gsm8k"]
    part = ExamPart(benchmark="gsm8k", source=write_rows(tmp_path / data.file, data.row))
    before = configured(part).problems(data.split)
    write_rows(tmp_path / data.file, data.row, data.row)
    configured(part).problems(data.split).clear()
    assert configured(part).problems(data.split) == before
    assert len(pickle.loads(pickle.dumps(configured(part))).problems(data.split)) == 2


@needs_data
@pytest.mark.parametrize(
    ("name", "counts"), [("gsm8k", (7473, 1319)), ("math", (7498, 5000)), ("mbpp", (374, 500)), ("humaneval", (0, 164))]
)
def test_the_real_data_is_complete(name: str, counts: tuple[int, int]) -> None:
    benchmark = load(name)
    problems = {split: benchmark.problems(split) if split in benchmark.splits else [] for split in SPLITS}
    assert tuple(len(problems[split]) for split in SPLITS) == counts
    assert len({problem.problem_id for split in SPLITS for problem in problems[split]}) == sum(counts)
    assert set(benchmark.excluded) == set(benchmark.splits)
    assert not any(benchmark.excluded.values())


@needs_data
def test_every_real_truth_of_gsm8k_is_correct_against_itself_only() -> None:
    from rewards.gsm8k import true_number

    benchmark = load("gsm8k")
    problems = [problem for split in SPLITS for problem in benchmark.problems(split)]
    scores = benchmark.score([Attempt(problem, problem.truth) for problem in problems])
    assert {score.verdict for score in scores} == {"correct"}
    one_more = [Attempt(problem, f"#### {(true_number(problem.truth) or 0) + 1}") for problem in problems]
    assert {score.verdict for score in benchmark.score(one_more)} == {"wrong"}
