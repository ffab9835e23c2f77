"""The tables between the stages keep what they were given, and take nothing that their schema does not know."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from models.rollout import Rollout
from tasks.tables import (
    EVALUATIONS,
    PROMPTS,
    SCORES,
    SOLVE_RATES,
    WORDS,
    read_rollouts,
    read_table,
    write_rollouts,
    write_table,
)

SCORE: dict[str, Any] = {
    "problem_id": "p",
    "group": 0,
    "sample": 1,
    "verdict": "correct",
    "parts": "{}",
    "seconds": 0.5,
    "reward": 1.0,
}
RATE: dict[str, Any] = {
    "problem_id": "p",
    "benchmark": "gsm8k",
    "night": "2026-11-20",
    "policy_digest": "cafe42",
    "tried": 2.0,
    "solved": 1.0,
    "level": None,
}
EVALUATION: dict[str, Any] = {
    "policy_digest": "cafe42",
    "benchmark": "arithmetic-1",
    "problem_id": "p",
    "sample": 0,
    "verdict": "wrong",
    "question": "1 + 1?",
    "text": "#### 3",
    "tokens": 3,
    "finish_reason": "stop",
    "correct": False,
    "level": "1",
}


def rollout(sample: int, tokens: int = 2) -> Rollout:
    logprobs = [-0.1234567890123456 * (n + 1) for n in range(tokens)]
    return Rollout(
        "p/1", 3, sample, [1, 2, 3], list(range(tokens)), logprobs, [True] * tokens, "length", "Grüße 🌙\n", "cafe42"
    )


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    write_table(file, SCORES, [SCORE, SCORE | {"sample": 2, "reward": None, "verdict": "grader_failed"}])
    table = read_table(file, SCORES)
    assert table.to_dict("records")[0] == SCORE
    assert math.isnan(table.reward[1])
    assert list(table.columns) == SCORES.names


def test_missing_texts_are_none_and_can_be_written_again(tmp_path: Path) -> None:
    """pandas would make NaN of them, which is no text, and of which no two are equal."""
    file = tmp_path / "solve_rates.parquet"
    write_table(file, SOLVE_RATES, [RATE, RATE | {"problem_id": "q", "level": "1"}])
    rows: list[Any] = read_table(file, SOLVE_RATES).to_dict("records")
    assert [row["level"] for row in rows] == [None, "1"]
    write_table(file, SOLVE_RATES, rows)
    assert read_table(file, SOLVE_RATES).to_dict("records") == rows


def test_an_answer_that_was_not_graded_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    file = tmp_path / "evaluations.parquet"
    rows = [EVALUATION | {"correct": correct} for correct in (True, False, None)]
    write_table(file, EVALUATIONS, rows)
    correct = read_table(file, EVALUATIONS).correct
    assert isinstance(correct.dtype, pd.BooleanDtype)
    assert correct.isna().tolist() == [False, False, True]
    assert correct.mean() == 0.5


def test_rollouts_keep_every_token_and_every_digit(tmp_path: Path) -> None:
    rollouts = [rollout(0), rollout(1, tokens=0), rollout(2, tokens=300)]
    write_rollouts(tmp_path / "rollouts.parquet", rollouts)
    assert read_rollouts(tmp_path / "rollouts.parquet") == rollouts


def test_a_table_may_be_empty(tmp_path: Path) -> None:
    write_table(tmp_path / "words.parquet", WORDS, [])
    table = read_table(tmp_path / "words.parquet", WORDS)
    assert (len(table), list(table.columns)) == (0, WORDS.names)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"extra": 1}, ValueError, "scores.parquet: no column extra"),
        ({"verdict": None}, ValueError, "scores.parquet: the column verdict may not be null"),
        ({"group": "three"}, pa.ArrowException, "three"),
        ({"group": 2**31}, pa.ArrowException, "2147483648"),
        ({"verdict": math.nan}, pa.ArrowException, "float"),
        ({"seconds": "fast"}, pa.ArrowException, "fast"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        write_table(tmp_path / "scores.parquet", SCORES, [SCORE, SCORE | change])
    assert not (tmp_path / "scores.parquet").exists()


def test_a_column_that_was_forgotten_is_refused(tmp_path: Path) -> None:
    row = {name: value for name, value in SCORE.items() if name != "seconds"}
    with pytest.raises(ValueError, match="the column seconds may not be null"):
        write_table(tmp_path / "scores.parquet", SCORES, [row])


def test_a_table_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    write_table(file, SCORES, [SCORE])
    with pytest.raises(ValueError, match="its columns are not those of this version") as caught:
        read_table(file, PROMPTS)
    assert str(file) in str(caught.value)
    with pytest.raises(ValueError, match="its columns are not those of this version"):
        read_rollouts(file)
