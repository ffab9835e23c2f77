"""GSM8K's problems from a folder and from the hub, and every real truth against itself."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conf.storage.home import InputError
from rewards.gsm8k import Gsm8k, true_number
from rewards.verifier import Attempt, Problem
from tests.rewards.local_hub import write_dataset

needs_data = pytest.mark.skipif(
    not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no GSM8K files to read"
)
QUESTION = "How many eggs are left?"


@needs_data
@pytest.mark.parametrize(("split", "count"), [("train", 7473), ("test", 1319)])
def test_every_truth_of_the_real_data_is_correct_against_itself(split: Any, count: int) -> None:
    benchmark = Gsm8k()
    problems = benchmark.problems(split)
    assert len(problems) == count
    assert [problem.problem_id for problem in problems] == [f"gsm8k/{split}/{index}" for index in range(count)]
    assert benchmark.excluded == {split: []}
    scores = benchmark.score([Attempt(problem, problem.truth) for problem in problems])
    assert {score.verdict for score in scores} == {"correct"}
    one_more = [Attempt(problem, f"#### {(true_number(problem.truth) or 0) + 1}") for problem in problems]
    assert {score.verdict for score in benchmark.score(one_more)} == {"wrong"}


def row(answer: str) -> str:
    return json.dumps({"question": QUESTION, "answer": answer}) + "\n"


@pytest.mark.parametrize("folder", [".", "gsm8k"])
def test_the_source_is_a_folder_or_holds_one(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "test.jsonl").write_text(row("9 * 2 = 18\n#### 18"))
    [problem] = Gsm8k(source=str(tmp_path)).problems("test")
    assert problem == Problem("gsm8k/test/0", "gsm8k", QUESTION, "9 * 2 = 18\n#### 18", None)


def test_an_unreadable_truth_is_left_out_counted_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "train.jsonl").write_text(row("#### 1") + row("many") + row("#### 3"))
    benchmark = Gsm8k(source=str(tmp_path))
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["gsm8k/train/0", "gsm8k/train/2"]
    assert benchmark.excluded == {"train": ["gsm8k/train/1"]}
    assert "gsm8k/train/1 is excluded" in caplog.text
    assert "1 of 3 train problems are excluded" in caplog.text


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere/gsm8k/train.jsonl: no such file"):
        Gsm8k().problems("train")
    with pytest.raises(InputError, match=f"^{tmp_path}/test.jsonl: no such file"):
        Gsm8k(source=str(tmp_path)).problems("test")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (row("#### 18")[:40], "line 2: not valid JSON"),
        (json.dumps({"question": QUESTION}), 'line 2: the field "answer" is missing'),
        (json.dumps({"question": QUESTION, "answer": 18}), 'line 2: the field "answer" is not a text'),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "train.jsonl").write_text(row("#### 1") + line)
    with pytest.raises(InputError) as caught:
        Gsm8k(source=str(tmp_path)).problems("train")
    assert str(caught.value).startswith(f"{tmp_path / 'train.jsonl'}, {said}")
    assert "\n" not in str(caught.value)


def test_without_a_folder_the_hub_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [{"question": QUESTION, "answer": "#### 18"}, {"question": QUESTION, "answer": "many"}]
    hub = write_dataset(tmp_path / "set", {"main": {"train": rows[1:], "test": rows}})
    monkeypatch.setattr("rewards.gsm8k.HUB", (hub, "main"))
    benchmark = Gsm8k()
    assert benchmark.problems("test") == [Problem("gsm8k/test/0", "gsm8k", QUESTION, "#### 18")]
    assert benchmark.excluded == {"test": ["gsm8k/test/1"]}
