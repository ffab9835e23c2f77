"""When the vault says that who serves has become worse: the bootstrap's interval and the exact test, by hand."""

import pytest

from tasks.evaluation.statistics import bootstrap
from tasks.evaluation.vault import fallen


@pytest.mark.parametrize(
    ("gained", "lost", "alarm"),
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
def test_few_flips_are_judged_exactly(gained: int, lost: int, alarm: bool) -> None:
    high = bootstrap(gained, lost, 300, samples=10_000, seed=1)[1]
    assert (high < 0) == (lost > gained)
    found = {"gsm8k": {"high": high, "gained": gained, "lost": lost}}
    assert fallen(found) == ["gsm8k"] * alarm


def test_an_interval_that_reaches_zero_is_no_alarm_either() -> None:
    assert fallen({"gsm8k": {"high": 0.0, "gained": 0, "lost": 6}}) == []
