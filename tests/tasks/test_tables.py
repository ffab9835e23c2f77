"""The tables between the stages keep what they were given, and refuse what their schema does not have."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from models.rollout import Rollout
from tasks import tables
from tasks.journal import tables as journal_tables
from tasks.tables import (
    EVALUATIONS,
    EVALUATIONS_EXAMPLE,
    PROMPTS,
    SCORES,
    SCORES_EXAMPLE,
    SOLVE_RATES,
    SOLVE_RATES_EXAMPLE,
    read_rollouts,
    read_table,
    table_rows,
    write_rollouts,
    write_table,
)

TABLES = vars(tables) | vars(journal_tables)
SCHEMAS = {name: schema for name, schema in TABLES.items() if isinstance(schema, pa.Schema)}


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_has_a_complete_example_that_fits(tmp_path: Path, name: str) -> None:
    example = TABLES[f"{name}_EXAMPLE"]
    assert list(example) == SCHEMAS[name].names
    write_table(tmp_path / "example.parquet", SCHEMAS[name], [example])
    assert table_rows(tmp_path / "example.parquet", SCHEMAS[name]) == [example]


def test_missing_texts_are_none_and_can_be_written_again(tmp_path: Path) -> None:
    """pandas would make NaN of them, which is no text, and of which no two are equal."""
    file = tmp_path / "solve_rates.parquet"
    write_table(file, SOLVE_RATES, [SOLVE_RATES_EXAMPLE | {"level": None}, SOLVE_RATES_EXAMPLE])
    rows: list[Any] = read_table(file, SOLVE_RATES).to_dict("records")
    assert [row["level"] for row in rows] == [None, "1"]
    write_table(file, SOLVE_RATES, rows)
    assert read_table(file, SOLVE_RATES).to_dict("records") == rows


def test_an_answer_that_was_not_graded_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    file = tmp_path / "evaluations.parquet"
    write_table(file, EVALUATIONS, [EVALUATIONS_EXAMPLE | {"correct": correct} for correct in (True, False, None)])
    correct = read_table(file, EVALUATIONS).correct
    assert isinstance(correct.dtype, pd.BooleanDtype)
    assert correct.isna().tolist() == [False, False, True]
    assert correct.mean() == 0.5


def test_rollouts_keep_every_token_and_every_digit(tmp_path: Path) -> None:
    def rollout(sample: int, tokens: int) -> Rollout:
        logprobs = [-0.1234567890123456 * (n + 1) for n in range(tokens)]
        mask = [True] * tokens
        return Rollout("p", 3, sample, [1, 2], list(range(tokens)), logprobs, mask, "length", "Grüße 🌙\n", "cafe42")

    rollouts = [rollout(0, 2), rollout(1, 0), rollout(2, 300)]
    write_rollouts(tmp_path / "rollouts.parquet", rollouts)
    assert read_rollouts(tmp_path / "rollouts.parquet") == rollouts


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"extra": 1}, ValueError, "scores.parquet: no column extra"),
        ({"verdict": None}, ValueError, "scores.parquet: the column verdict may not be null"),
        ({"verdict": math.nan}, pa.ArrowException, "float"),
    ],
)
def test_a_row_that_does_not_fit(tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        write_table(tmp_path / "scores.parquet", SCORES, [SCORES_EXAMPLE, SCORES_EXAMPLE | change])
    assert not (tmp_path / "scores.parquet").exists()


def test_a_table_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    write_table(file, SCORES, [SCORES_EXAMPLE])
    for read in (lambda: read_table(file, PROMPTS), lambda: read_rollouts(file)):
        with pytest.raises(ValueError, match="columns"):
            read()
