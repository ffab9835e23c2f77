"""What the update takes from the advantages table."""

import math
from pathlib import Path
from typing import Any

from tasks.tables import ADVANTAGES, read_table, write_table
from tasks.update import advantages_by_place


def written(tmp_path: Path, rows: list[tuple[int, float | None, list[float] | None]]) -> dict[tuple[int, int], Any]:
    """Rows of group 3 by sample, advantage and the tokens' advantages, written and read back."""
    table = [
        {"problem_id": "p", "group": 3, "sample": sample, "advantage": advantage, "token_advantages": tokens}
        for sample, advantage, tokens in rows
    ]
    write_table(tmp_path / "advantages.parquet", ADVANTAGES, table)
    return advantages_by_place(read_table(tmp_path / "advantages.parquet", ADVANTAGES))


def test_one_advantage_a_completion(tmp_path: Path) -> None:
    found = written(tmp_path, [(0, 0.5, None), (1, None, None), (2, -0.5, None)])
    assert (found[3, 0], found[3, 2]) == (0.5, -0.5)
    assert math.isnan(found[3, 1])


def test_the_tokens_own_advantages_where_there_are_some(tmp_path: Path) -> None:
    found = written(tmp_path, [(0, 0.5, [0.25, -1.0]), (1, None, [1.0]), (2, -0.5, None)])
    assert found == {(3, 0): [0.25, -1.0], (3, 1): [1.0], (3, 2): -0.5}
