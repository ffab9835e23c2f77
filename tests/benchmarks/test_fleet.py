"""The simulated week: what is submitted is accounted for, and more machines never miss more."""

import pytest

from benchmarks.fleet import LEAST, Fleet, simulate


@pytest.mark.parametrize("machines", [1, 3, 30])
@pytest.mark.parametrize("failures", [0.0, 0.5])
def test_every_night_is_whole_shortened_or_missed(machines: int, failures: float) -> None:
    found = simulate(Fleet(60, machines, days=2, failures=failures))
    assert found.nights == 120
    assert len(found.waits) <= 120
    assert found.busy >= LEAST * found.whole
    assert (found.failures > 0) == (failures > 0)


def test_enough_machines_leave_nobody_waiting() -> None:
    found = simulate(Fleet(50, 50, days=1, failures=0.0))
    assert (found.whole, max(found.waits)) == (50, 0.0)
    assert found.busy == pytest.approx(50 * 13.1, rel=0.05)


def test_more_machines_miss_less_and_cost_no_more_work() -> None:
    few, many = (simulate(Fleet(400, machines, days=1, failures=0.0)) for machines in (8, 16))
    assert few.missed > many.missed == 0
    assert few.shortened >= 1
