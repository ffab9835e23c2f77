"""Solve rates and advantages by token position: good beginnings and bad endings are told apart."""

from pathlib import Path

import pytest

from tasks.report.positions import by_position
from tasks.tables import ADVANTAGES
from tests.tasks.doubles.tables import RIGHT, WRONG, write_round, write_stage

LONG = ("x" * 24, 0.0)  # a wrong answer of 24 tokens; right ones have 5, other wrong ones 2


def write(night: Path, number: int, answers: list[tuple[str, float]], advantages: list[list[float] | float]) -> None:
    """Write a round with one group; advantages of single tokens, or of whole answers."""
    write_round(night / f"round-{number:02d}", {"sum": list(answers)})
    rows = [
        {"problem_id": "sum", "group": 0, "sample": sample}
        | {"advantage": 1.0, "token_advantages": each}
        | ({"advantage": each, "token_advantages": None} if isinstance(each, float) else {})
        for sample, each in enumerate(advantages)
    ]
    write_stage(night / f"round-{number:02d}" / "credit", {"advantages": (ADVANTAGES, rows)})


def test_long_answers_are_seen_apart_and_so_are_their_ends(tmp_path: Path) -> None:
    write(tmp_path, 1, [RIGHT, WRONG, LONG, LONG], [1.0, -1.0, [1.0] * 12 + [-2.0] * 12, [1.0] * 12 + [-2.0] * 12])
    write(tmp_path, 2, [RIGHT, RIGHT, RIGHT, LONG], [0.0, 0.0, 0.0, 0.0])
    table = by_position(tmp_path)
    assert table.index.tolist() == list(range(0, 24, 2))
    assert table["first"].tolist() == pytest.approx([1 / 4, 1 / 3, 1 / 3, *[0.0] * 9])
    assert table["last"].tolist() == pytest.approx([3 / 4, 3 / 4, 3 / 4, *[0.0] * 9])
    assert table["advantage"][0] == pytest.approx((2 * 1 - 2 * 1 + 4 * 1) / 16)
    assert table["advantage"].iloc[6:].tolist() == pytest.approx([-4 * 2 / 6] * 6)


def test_a_night_without_rounds_has_none(tmp_path: Path) -> None:
    assert by_position(tmp_path).empty
