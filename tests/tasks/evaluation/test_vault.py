"""The vault's alarm: by hand, where the bootstrap's interval and the exact test disagree."""

import pytest

from tasks.evaluation.statistics import bootstrap
from tasks.evaluation.vault import is_worse


@pytest.mark.parametrize(
    ("gained", "lost", "worse"),
    [
        (0, 4, False),  # the exact p is 1/16, though the interval lies below zero
        (0, 5, False),  # 1/32
        (0, 6, True),  # 1/64
        (1, 7, False),  # 9/256
        (1, 8, True),  # 10/512
        (6, 0, False),
        (0, 0, False),
    ],
)
def test_few_flips_are_judged_exactly(gained: int, lost: int, worse: bool) -> None:
    high = bootstrap(gained, lost, 300, samples=10_000, seed=1)[1]
    assert (high < 0) == (lost > gained)
    assert is_worse(high, gained, lost) == worse


def test_an_interval_that_reaches_zero_is_no_alarm_either() -> None:
    assert not is_worse(0.0, 0, 6)
