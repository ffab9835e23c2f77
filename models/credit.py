"""Credit assignment in multi-turn episodes: how much more each turn earned than was expected at that point.

A group is G episodes with the same start. Episodes that reach the same state serve as each other's baselines.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from conf.schema import GrpoConfig
from models.td import gae


class Visit(NamedTuple):
    """One turn of an episode. `key` identifies what the policy saw before the turn; `reward` is the turn's reward."""

    key: str
    reward: float


GAMMA, LAMBDA = 0.99, 0.95  # discount per turn; trace decay for `credit: td`

Group = Sequence[Sequence[Visit]]
Values = list[list[float]]


def state_values(group: Group, gamma: float = GAMMA) -> Values:
    """Return a value V for each visit: the mean return-to-go over all of the group's visits to the same state.

    If the group visits the state only once, V is the mean return-to-go of all its episodes at that turn number.
    """
    zeros = [[0.0] * len(episode) for episode in group]
    returns = td_advantages(group, zeros, gamma, 1.0)  # with λ = 1 and values of 0: G_t = r_t + γ·G_{t+1}
    by_key: dict[str, list[float]] = defaultdict(list)
    by_turn: dict[int, list[float]] = defaultdict(list)
    for episode, earned in zip(group, returns, strict=True):
        for turn, (visit, value) in enumerate(zip(episode, earned, strict=True)):
            by_key[visit.key].append(value)
            by_turn[turn].append(value)
    return [
        [
            fmean(by_key[visit.key] if len(by_key[visit.key]) > 1 else by_turn[turn])
            for turn, visit in enumerate(episode)
        ]
        for episode in group
    ]


def td_advantages(group: Group, values: Values, gamma: float, lam: float) -> Values:
    """Return Σ_k (γλ)^k δ_{t+k} for each turn t, with δ_t = r_t + γ·V_{t+1} − V_t. V is `values`, and 0 at the end."""
    return [
        gae([visit.reward for visit in episode], [*expected, 0.0], gamma, lam).tolist()
        for episode, expected in zip(group, values, strict=True)
    ]


def turn_advantages(group: Group, values: Values, episode_advantages: Float[Tensor, "G"], grpo: GrpoConfig) -> Values:
    """Return an advantage for each turn of a group's episodes, as `grpo.credit` says. `values`: from `state_values`."""
    if grpo.credit == "td":
        return td_advantages(group, values, GAMMA, LAMBDA)
    return [[whole] * len(episode) for whole, episode in zip(episode_advantages.tolist(), group, strict=True)]
