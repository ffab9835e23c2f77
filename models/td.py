"""Temporal differences: returns and advantages with eligibility traces, and small linear learners to test them on.

Numbers in parentheses are sections of Sutton and Barto 2018, "Reinforcement Learning", second edition. Nothing here
knows what a language model is. Rewards, values and features come from outside, so that environment, policy, value and
learning rule can be exchanged one by one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Numbers = Sequence[float] | np.ndarray | Tensor
Vector = Float[np.ndarray, "features"]


def td_errors(rewards: Numbers, values: Numbers, gamma: float) -> Float[Tensor, "T"]:
    """Return δ_t = r_t + γ·v_{t+1} − v_t (6.5), of `rewards` [T] and `values` [T + 1].

    The last value is that of the state after the last reward: 0 where the episode has ended. Raises ValueError where
    there is not exactly one value more than rewards.
    """
    r, v = _tensor(rewards), _tensor(values)
    if v.shape != (len(r) + 1,):
        raise ValueError(f"{len(r)} rewards need {len(r) + 1} values, not {len(v)}: one for the state after the last")
    return r + gamma * v[1:] - v[:-1]


def gae(rewards: Numbers, values: Numbers, gamma: float, lam: float) -> Float[Tensor, "T"]:
    """Return the advantages A_t = Σ_k (γλ)^k δ_{t+k} (generalised advantage estimation, Schulman et al. 2016)."""
    errors = td_errors(rewards, values, gamma)
    advantages = torch.empty_like(errors)
    later = torch.zeros((), dtype=errors.dtype)
    for t in reversed(range(len(errors))):
        later = advantages[t] = errors[t] + gamma * lam * later
    return advantages


def lambda_returns(rewards: Numbers, values: Numbers, gamma: float, lam: float) -> Float[Tensor, "T"]:
    """Return G_t = r_t + γ·((1 − λ)·v_{t+1} + λ·G_{t+1}), with G_T = v_T (12.1, in its recursive form)."""
    return gae(rewards, values, gamma, lam) + _tensor(values)[:-1]


def trace_weights(length: int, gamma: float, lam: float) -> Float[Tensor, "T"]:
    """Return (γλ)^(T−1−t): what each step's gradient weighs in an accumulating trace after the last of T steps.

    As long as the weights do not change, the trace e ← γλ·e + ∇log π_t is the gradient of the sum of the log-
    probabilities, weighted so.
    """
    return (gamma * lam) ** torch.arange(length - 1, -1, -1, dtype=torch.float64)


def lstd(episodes: Sequence[tuple[np.ndarray, np.ndarray]], gamma: float, lam: float, ridge: float) -> Vector:
    """Return the weights of a linear value function by least squares: LSTD(λ) (Boyan 2002) with a ridge.

    An episode is its features [T + 1, d] and rewards [T]; features of an end are zeros. With the traces
    z_t = γλ·z_{t−1} + x_t it solves (Σ z_t (x_t − γ·x_{t+1})ᵀ + ridge·I) w = Σ z_t·r_t.
    """
    size = episodes[0][0].shape[1]
    matrix, target = ridge * np.eye(size), np.zeros(size)
    for features, rewards in episodes:
        trace = np.zeros(size)
        for x, following, reward in zip(features, features[1:], rewards, strict=False):
            trace = gamma * lam * trace + x
            matrix += np.outer(trace, x - gamma * following)
            target += trace * reward
    return np.linalg.solve(matrix, target)


def gradient_bandit(
    preferences: Float[np.ndarray, "bandits k"],
    chosen: Int[np.ndarray, "bandits"],
    advantages: Float[np.ndarray, "bandits"],
    alpha: float,
) -> Float[np.ndarray, "bandits k"]:
    """Return H + α·(r − baseline)·(1[chosen] − π), π = softmax(H): one step of the gradient bandit (2.12)."""
    step = -softmax(preferences)
    step[np.arange(len(chosen)), chosen] += 1.0
    return preferences + alpha * advantages[:, None] * step


def softmax(preferences: Float[np.ndarray, "... k"]) -> Float[np.ndarray, "... k"]:
    """Return the probabilities of the last axis."""
    powers = np.exp(preferences - preferences.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class Value(Protocol):
    """A value function that learns from one transition at a time."""

    def begin(self) -> None:
        """Begin an episode: forget the trace."""
        ...

    def learn(self, x: Vector, reward: float, following: Vector) -> float:
        """Learn from a transition between two states' features (zeros: the end). Returns the TD error before it."""
        ...


class LinearTd:
    """TD(λ) with linear values: accumulating traces (12.2), or true online (12.5, van Seijen et al. 2016)."""

    def __init__(self, size: int, alpha: float, gamma: float, lam: float, *, true_online: bool = False) -> None:
        self.alpha, self.gamma, self.lam, self.true_online = alpha, gamma, lam, true_online
        self.weights, self.trace, self.before = np.zeros(size), np.zeros(size), 0.0

    def begin(self) -> None:
        """Begin an episode: forget the trace."""
        self.trace, self.before = np.zeros_like(self.trace), 0.0

    def learn(self, x: Vector, reward: float, following: Vector) -> float:
        """Learn from a transition between two states' features (zeros: the end). Returns the TD error before it."""
        value, next_value = float(self.weights @ x), float(self.weights @ following)
        error, decay = reward + self.gamma * next_value - value, self.gamma * self.lam
        if self.true_online:
            self.trace = decay * self.trace + (1.0 - self.alpha * decay * float(self.trace @ x)) * x
            drift = value - self.before
            self.weights = self.weights + self.alpha * ((error + drift) * self.trace - drift * x)
            self.before = next_value
        else:
            self.trace = decay * self.trace + x
            self.weights = self.weights + self.alpha * error * self.trace
        return error


class ActorCritic:
    """A softmax policy with linear preferences and a trace of its own, moved by a critic's TD errors (13.5)."""

    def __init__(self, size: int, actions: int, critic: Value, alpha: float, gamma: float, lam: float) -> None:
        self.critic, self.alpha, self.decay = critic, alpha, gamma * lam
        self.weights = np.zeros((actions, size))
        self.trace = np.zeros((actions, size))

    def begin(self) -> None:
        """Begin an episode: forget both traces."""
        self.trace = np.zeros_like(self.trace)
        self.critic.begin()

    def act(self, x: Vector, chance: np.random.Generator) -> int:
        """Draw an action."""
        return int(chance.choice(len(self.weights), p=softmax(self.weights @ x)))

    def learn(self, x: Vector, action: int, reward: float, following: Vector) -> float:
        """Learn from a transition, by critic and policy. Returns the TD error."""
        error = self.critic.learn(x, reward, following)
        score = -softmax(self.weights @ x)
        score[action] += 1.0
        self.trace = self.decay * self.trace + np.outer(score, x)
        self.weights = self.weights + self.alpha * error * self.trace
        return error


def _tensor(numbers: Numbers) -> Tensor:
    return numbers if isinstance(numbers, Tensor) else torch.from_numpy(np.asarray(numbers, dtype=np.float64))
