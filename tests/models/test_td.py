"""Temporal differences on problems with known answers (figures: Sutton and Barto 2018, second edition)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.random_walk import TRUTH, rms
from models.td import lambda_returns, td_errors, trace_weights

REWARDS, VALUES = [1.0, 0.0, 2.0], [0.5, 1.0, -1.0, 4.0]
NUMBERS = st.floats(-10, 10)
SHARES = st.floats(0, 1)


@st.composite
def episodes(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    length = draw(st.integers(1, 8))
    return (
        draw(st.lists(NUMBERS, min_size=length, max_size=length)),
        draw(st.lists(NUMBERS, min_size=length + 1, max_size=length + 1)),
    )


def test_td_errors_by_hand() -> None:
    assert td_errors(REWARDS, VALUES, 0.5).tolist() == [1.0, -1.5, 5.0]
    assert trace_weights(3, 0.5, 0.8).tolist() == pytest.approx([0.16, 0.4, 1.0])
    assert trace_weights(0, 0.5, 0.8).tolist() == []
    with pytest.raises(ValueError, match="4 values, not 3"):
        td_errors(REWARDS, VALUES[:3], 0.5)


@given(episodes(), SHARES, st.sampled_from([0.0, 1.0]) | SHARES)
def test_a_lambda_return_is_a_mean_of_n_steps(
    episode: tuple[list[float], list[float]], gamma: float, lam: float
) -> None:
    """Of one step for λ = 0, the TD error; of all steps for λ = 1, Monte Carlo."""
    rewards, values = episode
    length = len(rewards)

    def n_step(t: int, n: int) -> float:
        return sum(gamma**k * rewards[t + k] for k in range(n)) + gamma**n * values[t + n]

    for t, found in enumerate(lambda_returns(rewards, values, gamma, lam).tolist()):
        left = length - t
        mean = sum((1 - lam) * lam ** (n - 1) * n_step(t, n) for n in range(1, left))
        assert found == pytest.approx(mean + lam ** (left - 1) * n_step(t, left), abs=1e-9)


@pytest.mark.full
def test_the_random_walk_has_the_books_errors() -> None:
    """Figures 12.6 and 12.8: in the middle between one-step and Monte Carlo it is best, and true online is better."""
    start = float(np.sqrt(np.mean(TRUTH**2)))
    assert start == pytest.approx(0.548, abs=0.001)
    errors = [rms(alpha, lam, 60) for alpha, lam in ((0.4, 0.0), (0.4, 0.4), (0.2, 0.8), (0.01, 1.0))]
    assert errors == pytest.approx([0.41, 0.33, 0.30, 0.50], abs=0.03)
    assert min(errors[1:3]) < errors[0] < start
    assert errors[2] < errors[3]
    assert rms(0.3, 0.8, 60, true_online=True) < errors[2]
