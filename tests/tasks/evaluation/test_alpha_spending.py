"""α over the nights: by hand, against the sum that makes it α in all, and as the report states it."""

from math import pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.evaluation.alpha_spending import level


def test_a_fixed_alpha_is_every_nights() -> None:
    found = level(0.025, "fixed", earlier=9)
    assert (found.alpha, found.exams) == (0.025, 10)
    assert found.spent == pytest.approx(0.25)
    assert found.false_promotions_a_year == pytest.approx(9.125)  # 365 × 0.025


def test_a_spent_alpha_by_hand() -> None:
    # 6 / π² = 0.6079271; a quarter of it the second night, a ninth the third
    assert [level(0.025, "quadratic", earlier).alpha for earlier in range(3)] == pytest.approx(
        [0.0151982, 0.0037995, 0.0016887], abs=1e-7
    )
    third = level(0.025, "quadratic", earlier=2)
    assert third.exams == 3
    assert third.spent == pytest.approx(0.0151982 + 0.0037995 + 0.0016887, abs=1e-7)


@given(st.floats(0.001, 0.4), st.integers(0, 3000))
def test_what_is_spent_never_reaches_alpha_and_goes_there(alpha: float, earlier: int) -> None:
    found = level(alpha, "quadratic", earlier)
    assert 0 < found.alpha <= found.spent < alpha
    # the rest of Σ 1/k² after K terms lies between 1 / (K + 1) and 1 / K
    rest = 1 - found.spent / alpha
    assert 6 / pi**2 / (found.exams + 1) <= rest + 1e-12
    assert rest - 1e-12 <= 6 / pi**2 / found.exams
    assert found.false_promotions_a_year <= alpha - found.spent + found.alpha
