"""Temporal differences: returns and advantages with eligibility traces.

Equation and section numbers refer to Sutton and Barto 2018, "Reinforcement Learning", second edition. This module does
not depend on language models: callers pass in rewards and values.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Numbers = Sequence[float] | np.ndarray | Tensor


def td_errors(rewards: Numbers, values: Numbers, gamma: float) -> Float[Tensor, "T"]:
    """Return δ_t = r_t + γ·v_{t+1} − v_t (equation 6.5) for `rewards` [T] and `values` [T + 1].

    The last value belongs to the state after the last reward: 0 if the episode has ended. Raises ValueError unless
    there is exactly one more value than there are rewards.
    """
    r, v = _tensor(rewards), _tensor(values)
    if v.shape != (len(r) + 1,):
        raise ValueError(f"{len(r)} rewards need {len(r) + 1} values, not {len(v)}: one for the state after the last")
    return r + gamma * v[1:] - v[:-1]


def gae(rewards: Numbers, values: Numbers, gamma: float, lam: float) -> Float[Tensor, "T"]:
    """Return generalised advantage estimates (Schulman et al. 2016): Σ_k (γλ)^k δ_{t+k}, with δ from `td_errors`."""
    errors = td_errors(rewards, values, gamma)
    advantages = torch.empty_like(errors)
    later = torch.zeros((), dtype=errors.dtype)
    for t in reversed(range(len(errors))):
        later = advantages[t] = errors[t] + gamma * lam * later
    return advantages


def lambda_returns(rewards: Numbers, values: Numbers, gamma: float, lam: float) -> Float[Tensor, "T"]:
    """Return G_t = r_t + γ·((1 − λ)·v_{t+1} + λ·G_{t+1}), with G_T = v_T (section 12.1, recursive form)."""
    return gae(rewards, values, gamma, lam) + _tensor(values)[:-1]


def trace_weights(length: int, gamma: float, lam: float) -> Float[Tensor, "T"]:
    """Return (γλ)^(T−1−t) for each step t: the weight of its gradient in an accumulating trace after T steps.

    While the model does not change, the trace e ← γλ·e + ∇log π_t is the gradient of Σ_t w_t·log π_t, where w_t are the
    returned weights.
    """
    return (gamma * lam) ** torch.arange(length - 1, -1, -1, dtype=torch.float64)


def _tensor(numbers: Numbers) -> Tensor:
    return numbers if isinstance(numbers, Tensor) else torch.from_numpy(np.asarray(numbers, dtype=np.float64))
