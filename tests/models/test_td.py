"""Temporal differences on problems with known answers (figures: Sutton and Barto 2018, second edition)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.random_walk import TRUTH, rms
from models.td import gae, lambda_returns, td_errors, trace_weights
from tests.models.support.tiny import plain_model

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


@given(episodes(), SHARES, SHARES)
def test_credit_backwards_is_that_forwards(episode: tuple[list[float], list[float]], gamma: float, lam: float) -> None:
    """Σ_t δ_t·z_t = Σ_t ∇log π_t·A_t, z_t the accumulating trace and A_t the advantage (12.1 to 12.2)."""
    rewards, values = episode
    scores = torch.randn(len(rewards), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    trace, backwards = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for error, score in zip(td_errors(rewards, values, gamma), scores, strict=True):
        trace = gamma * lam * trace + score
        backwards += error * trace
    forwards = gae(rewards, values, gamma, lam) @ scores
    assert torch.allclose(backwards, forwards, rtol=0, atol=1e-12 * max(1.0, float(backwards.abs().max())))


def test_a_recursive_trace_is_one_weighted_backward_pass(folder: Path) -> None:
    """Of a language model's tokens: e ← γλ·e + ∇log π_t, against the gradient of Σ_t (γλ)^(T−1−t) log π_t."""
    model = plain_model(folder)
    tokens = torch.tensor([[3, 5, 8, 2, 9, 4]])

    def logprobs() -> torch.Tensor:
        steps = model(input_ids=tokens, use_cache=False).logits[0, :-1].float().log_softmax(-1)
        return steps.gather(1, tokens[0, 1:, None])[:, 0]

    weights = list(model.parameters())
    trace = [torch.zeros_like(weight) for weight in weights]
    for t in range(tokens.shape[1] - 1):
        gradients = torch.autograd.grad(logprobs()[t], weights)
        trace = [0.99 * 0.95 * old + new for old, new in zip(trace, gradients, strict=True)]
    total = (trace_weights(tokens.shape[1] - 1, 0.99, 0.95).float() * logprobs()).sum()
    for recursive, whole in zip(trace, torch.autograd.grad(total, weights), strict=True):
        assert torch.allclose(recursive, whole, rtol=1e-4, atol=1e-5)


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
