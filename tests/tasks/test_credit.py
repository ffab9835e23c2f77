"""Advantages over a group's own mean, in the groups' own order, with nothing for what was not graded."""

import math
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest

from conf.schema import GrpoConfig
from tasks.credit import credit
from tasks.tables import ADVANTAGES, SCORES, read_table
from tests.tasks.committed_tables import score, write_stage


def run(tmp_path: Path, rows: list[dict[str, Any]], size: int, scale: Literal["none", "std"] = "none") -> pd.DataFrame:
    scores = write_stage(tmp_path / "score", {"scores": (SCORES, rows)})
    (tmp_path / "credit").mkdir()
    credit.write(tmp_path / "credit", scores=scores, grpo=GrpoConfig(group_size=size, scale=scale))
    return read_table(tmp_path / "credit" / "advantages.parquet", ADVANTAGES)


def by_place(table: pd.DataFrame) -> dict[tuple[int, int], float]:
    rows: list[Any] = table.to_dict("records")
    return {(row["group"], row["sample"]): row["advantage"] for row in rows}


def test_advantages_by_hand(tmp_path: Path) -> None:
    rewards = [[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    rows = [score(f"p{g}", g, s, reward) for g, group in enumerate(rewards) for s, reward in enumerate(group)]
    found = by_place(run(tmp_path, rows, 4))
    expected = [[0.5, -0.5, -0.5, 0.5], [0.75, -0.25, -0.25, -0.25], [0.0] * 4]
    assert found == {(g, s): value for g, group in enumerate(expected) for s, value in enumerate(group)}


def test_rows_in_any_order(tmp_path: Path) -> None:
    rows = [score("b", 1, 1, 1.0), score("a", 0, 1, 1.0), score("b", 1, 0, 1.0), score("a", 0, 0, 0.0)]
    table = run(tmp_path, rows, 2)
    assert by_place(table) == {(0, 0): -0.5, (0, 1): 0.5, (1, 0): 0.0, (1, 1): 0.0}
    assert dict(zip(table.group, table.problem_id, strict=True)) == {0: "a", 1: "b"}


def test_what_was_not_graded_is_left_out_of_the_baseline(tmp_path: Path) -> None:
    rows = [score("a", 0, sample, reward) for sample, reward in enumerate([1.0, None, 0.0, 0.0])]
    rows += [score("b", 1, sample, None) for sample in range(4)]
    found = by_place(run(tmp_path, rows, 4))
    assert [found[0, sample] for sample in (0, 2, 3)] == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert math.isnan(found[0, 1])
    assert all(math.isnan(found[1, sample]) for sample in range(4))


def test_divided_by_the_groups_deviation(tmp_path: Path) -> None:
    rows = [score("a", 0, sample, reward) for sample, reward in enumerate([1.0, 0.0, 0.0, 0.0])]
    found = by_place(run(tmp_path, rows, 4, "std"))
    assert found[0, 0] == pytest.approx(0.75 / (0.5 + 1e-4))  # the deviation with n − 1 is √((9/16 + 3/16) / 3) = 0.5
    assert found[0, 1] == pytest.approx(-0.25 / (0.5 + 1e-4))
