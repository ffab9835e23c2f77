"""Gymnasium's Frozen Lake as an environment of text: a real example of the adapter."""

from typing import Any

import gymnasium
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from rewards.environments.gymnasium_text import GymnasiumText

RULES = "S start, F ice, H hole, G goal. Answer with one word: left, down, right or up."


class FrozenLake(GymnasiumText):
    """Four by four cells, another lake for each seed, no slipping."""

    def __init__(self, source: str | None = None) -> None:
        actions = {"left": 0, "down": 1, "right": 2, "up": 3}
        super().__init__("frozen_lake", lake, actions, described, RULES, turns=12)


def lake(seed: int) -> Any:
    """Return the lake of a seed."""
    return gymnasium.make("FrozenLake-v1", desc=generate_random_map(4, seed=seed), is_slippery=False).unwrapped


def described(environment: Any, seen: Any) -> str:
    """Return the lake with a star where the walker stands."""
    rows = [[cell.decode() for cell in row] for row in environment.desc]
    rows[int(seen) // 4][int(seen) % 4] = "*"
    return "\n".join("".join(row) for row in rows)
