"""MATH's problems from a folder and from the hub: the prompt, the levels, the ids, MATH-500, what is left out."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.competition_math import CompetitionMath
from tests.rewards.local_hub import write_dataset

needs_data = pytest.mark.skipif(
    not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no MATH files to read"
)


def row(answer: str = r"\boxed{5}", level: str = "Level 3", kind: str = "Algebra", problem: str = "How many?") -> dict:
    return {"problem": problem, "level": level, "type": kind, "solution": f"It is {answer}."}


def write_rows(path: Path, *rows: dict) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))


def test_the_prompt_the_level_and_the_kind(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", row(level="Level 5", kind="Counting & Probability"), row(level="Level ?"))
    benchmark = CompetitionMath(source=str(tmp_path))
    first, second = benchmark.problems("test")
    assert benchmark.prompt(first) == (
        "How many?\nPlease reason step by step, and put your final answer within \\boxed{}."
    )
    assert (first.benchmark, first.level, second.level) == ("math", "5", None)
    assert first.problem_id.startswith("math/test/counting_and_probability/")
    assert benchmark.kind(first) == first.problem_id
    assert (first.subject, second.subject) == ("counting_and_probability", "algebra")
    assert first == replace(first, subject=None)  # a round's table does not have it, and means the same problem


def test_only_the_levels_asked_for(tmp_path: Path) -> None:
    write_rows(tmp_path / "train.jsonl", *[row(level=f"Level {level}") for level in "12345?"])
    levels = [problem.level for problem in CompetitionMath(str(tmp_path), levels=["2", "4"]).problems("train")]
    assert levels == ["2", "4"]


def test_a_solution_without_an_answer_is_left_out_counted_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [
        row(problem="one"),
        row("5", problem="two"),
        row(r"\boxed{}", problem="three"),
        row(r"\boxed{5", problem="4"),
    ]
    write_rows(tmp_path / "train.jsonl", *rows)
    benchmark = CompetitionMath(source=str(tmp_path))
    assert [problem.question for problem in benchmark.problems("train")] == ["one"]
    assert len(benchmark.excluded["train"]) == 3
    assert f"{benchmark.excluded['train'][0]} is excluded" in caplog.text
    assert "3 of 4 train problems are excluded" in caplog.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"problem": "?", "level": "Level 1", "type": "Algebra"}, 'line 2: the field "solution" is missing'),
        ({**row(), "level": 1}, 'line 2: the field "level" is not a text'),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: dict, said: str) -> None:
    write_rows(tmp_path / "train.jsonl", row(), line)
    with pytest.raises(InputError) as caught:
        CompetitionMath(source=str(tmp_path)).problems("train")
    assert str(caught.value).startswith(f"{tmp_path / 'train.jsonl'}, {said}")


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InputError, match=r"^math: no level 6; there are 1, 2, 3, 4, 5$"):
        CompetitionMath(levels=["6", "1"])
    with pytest.raises(InputError, match="^math: no subset 100"):
        CompetitionMath(subset="100")
    with pytest.raises(InputError, match="^math: MATH-500 has a test split only"):
        CompetitionMath(subset="500").problems("train")


def test_the_subset_needs_its_ids(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", {**row(), "id": "test/algebra/1"})
    benchmark = CompetitionMath(source=str(tmp_path), subset="500")
    with pytest.raises(InputError, match=f"^{tmp_path}/math500_ids.txt: no such file"):
        benchmark.problems("test")
    (tmp_path / "math500_ids.txt").write_text("test/algebra/2\n")
    with pytest.raises(InputError, match="math500_ids.txt: test/algebra/2 is not an id of the test split"):
        benchmark.problems("test")
    (tmp_path / "math500_ids.txt").write_text("test/algebra/1\n")
    assert len(benchmark.problems("test")) == 1


def test_the_hub_gives_the_same_problems_as_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    subjects = ["Algebra", "Counting & Probability", "Geometry", "Intermediate Algebra", "Number Theory"]
    rows = [row(kind=kind, problem=f"{kind}?") for kind in [*subjects, "Prealgebra", "Precalculus"]]
    names = [entry["type"].lower().replace("&", "and").replace(" ", "_") for entry in rows]
    hub = write_dataset(tmp_path / "set", {name: {"train": [entry]} for name, entry in zip(names, rows, strict=True)})
    monkeypatch.setattr("rewards.competition_math.HUB", hub)
    write_rows(tmp_path / "train.jsonl", *[{**entry, "id": f"train/{n}"} for n, entry in enumerate(rows)])
    from_hub = CompetitionMath().problems("train")
    assert len(from_hub) == 7
    assert from_hub == CompetitionMath(source=str(tmp_path)).problems("train")


def test_the_hubs_math_500(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    published = {"problem": "How many?", "solution": r"\boxed{5}", "answer": "5", "subject": "Algebra", "level": 3}
    hub = write_dataset(tmp_path / "set", {"default": {"test": [{**published, "unique_id": "test/algebra/1.json"}]}})
    monkeypatch.setattr("rewards.competition_math.HUB_500", hub)
    [problem] = CompetitionMath(subset="500").problems("test")
    assert (problem.question, problem.level, problem.truth) == ("How many?", "3", r"\boxed{5}")
    write_rows(tmp_path / "test.jsonl", row(r"\boxed{5}"))
    [same] = CompetitionMath(source=str(tmp_path)).problems("test")
    assert problem.problem_id == same.problem_id


@needs_data
def test_the_real_data(caplog: pytest.LogCaptureFixture) -> None:
    benchmark = CompetitionMath()
    train, test = benchmark.problems("train"), benchmark.problems("test")
    assert (len(train), len(test)) == (7498, 5000)
    assert len({problem.problem_id for problem in train + test}) == 12498
    assert benchmark.excluded == {"train": [], "test": []}
    assert not caplog.records
    hard = CompetitionMath(levels=["5"]).problems("test")
    assert len(hard) == 1324
    assert {problem.level for problem in hard} == {"5"}


@needs_data
def test_the_real_math_500() -> None:
    problems = CompetitionMath(subset="500").problems("test")
    assert len(problems) == 500
    assert {problem.problem_id for problem in problems} <= {p.problem_id for p in CompetitionMath().problems("test")}
    assert problems[0].level == "2"
    assert problems[0].question.startswith("Convert the point $(0,3)$ in rectangular coordinates to polar")
