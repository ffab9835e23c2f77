"""What is printed of pairs of short nights: by hand."""

from pathlib import Path

import pytest

from benchmarks.curriculum import regret
from benchmarks.nights.paired import Run, against, table


def runs(*gains: float) -> list[Run]:
    return [Run(Path(), gain, 500_000) for gain in gains]


def test_the_difference_of_pairs_has_students_interval() -> None:
    assert against([0.3, 0.2, 0.4], [0.1, 0.1, 0.1]) == "+0.200 [-0.048, +0.448]"  # t = 4.303, s / √3 = 0.0577
    assert against([0.3], [0.1]) == against([0.3, 0.2], [0.1]) == ""


def test_the_table_has_each_seeds_gain_and_the_reference_no_difference() -> None:
    rows = table({"even": runs(0.1, 0.2), "signal": runs(0.2, 0.4)}, "problems", "even").splitlines()[2:]
    assert rows[0] == "| even | +0.100, +0.200 | +0.150 | +0.30 |  |"
    assert rows[1].startswith("| signal | +0.200, +0.400 | +0.300 | +0.60 | +0.150 [")


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ({"even": runs(0.1)}, []),
        (
            {"even": runs(0.1), "level 1": runs(0.05), "level 3": runs(0.3)},
            ["", "The best single level is level 3 (+0.300); regret to it:", "- even: +0.200"],
        ),
    ],
)
def test_regret_is_to_the_best_single_level(found: dict[str, list[Run]], lines: list[str]) -> None:
    assert regret(found) == lines
