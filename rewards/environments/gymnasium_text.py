"""Turns environments with Gymnasium's interface, `reset(seed=…)` and `step(action)`, into text episodes.

A state holds only the seed, the turn and the actions so far, which each step replays. So a state is always JSON.
Gymnasium itself is not imported: any object with these two methods will do.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from rewards.environment import State, Step
from rewards.verifier import Problem, Split

EPISODES = 200  # per split; their seeds are 0, 2, 4, … in training and 1, 3, 5, … in the exam


class GymnasiumText:
    """A Gymnasium environment, presented as text. The model chooses an action by its name.

    `make(seed)` returns a new environment. `actions` maps each action's name, a single lower-case word, to the action.
    `describe(environment, observation)` returns what the model sees. `rules` precede the first observation. `turns` is
    the turn limit per episode. The first action named in a reply is taken. If none is named, the turn is lost.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[int], Any],
        actions: Mapping[str, Any],
        describe: Callable[[Any, Any], str],
        rules: str,
        turns: int,
    ) -> None:
        self.name, self.make, self.actions, self.describe = name, make, actions, describe
        self.rules, self.turns = rules, turns

    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems, one per seed."""
        seeds = range(split == "test", 2 * EPISODES, 2)
        return [Problem(f"{self.name}/{seed}", self.name, f"Play {self.name} from seed {seed}.", "") for seed in seeds]

    def kind(self, problem: Problem) -> str:
        """Return the environment's name, so that a night tracks one solve rate for all its episodes."""
        return self.name

    def reset(self, problem: Problem) -> tuple[State, str]:
        """Return the first state, and the first observation preceded by the rules."""
        seed = int(problem.problem_id.rpartition("/")[2])
        environment, seen = self._at(seed, [])
        return {"seed": seed, "words": [], "turn": 0}, f"{self.rules}\n{self.describe(environment, seen)}"

    def step(self, state: State, text: str) -> Step:
        """Take the action that the model's reply names, and return the environment's response."""
        word = next((found for found in re.findall(r"\w+", text.lower()) if found in self.actions), None)
        environment, seen = self._at(state["seed"], state["words"])
        reward, terminated, truncated = 0.0, False, False
        if word is not None:
            seen, reward, terminated, truncated, _ = environment.step(self.actions[word])
        turn, words = state["turn"] + 1, [*state["words"], *([word] if word else [])]
        after = {"seed": state["seed"], "words": words, "turn": turn}
        info = {"valid": word is not None, "action": word or "", "parts": {"reward": float(reward)}}
        over = bool(truncated) or turn >= self.turns
        return after, self.describe(environment, seen), float(reward), bool(terminated), over, info

    def _at(self, seed: int, words: list[str]) -> tuple[Any, Any]:
        environment = self.make(seed)
        seen, _ = environment.reset(seed=seed)
        for word in words:
            seen, *_ = environment.step(self.actions[word])
        return environment, seen
