"""The contract between an environment, in which a model acts for several turns, and the night."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rewards.data.problem import Problem, Split

State = dict[str, Any]
Step = tuple[State, str, float, bool, bool, Mapping[str, Any]]


class Environment(Protocol):
    """Episodes of several turns, in Gymnasium's shape: actions and observations are text, the state is JSON.

    Everything that an episode depends on is in the state: whoever has it can go on from there, or again. A class needs
    `name` and the methods up to `step`; the others have defaults.
    """

    name: str

    def problems(self, split: Split) -> list[Problem]:
        """Return where the episodes of a split begin, in a fixed order."""
        ...

    def kind(self, problem: Problem) -> str:
        """Return what sort of episode it is; a night counts returns by it."""
        ...

    def reset(self, problem: Problem) -> tuple[State, str]:
        """Return the state at the start of an episode, and the first observation, rules included."""
        ...

    def step(self, state: State, text: str) -> Step:
        """Return what follows from the model's text: state, observation, reward, terminated, truncated, info.

        `terminated`: the episode has come to its end; `truncated`: its turns are used up. The given state stays as it
        is. `info` may have: whether the text was a `valid` action (else it counts as one), the reward's `parts` by
        name, the `action` as it was understood, the `agent` that acted, and the `value` of the episode so far, which
        the exam counts (else the sum of the rewards): 1 is as good as a good player.
        """
        ...

    def drawing(self, state: State) -> str:
        """Return a state as SVG, for the morning report; the default is none (empty)."""
        return ""

    def characters(self, state: State) -> str:
        """Return a state as lines of characters, for the terminal; the default is none (empty)."""
        return ""

    def solutions(self) -> Sequence[tuple[Problem, Sequence[str | Mapping[str, Any]]]]:
        """Return training problems with what a teacher wrote in each turn; the default is none.

        A turn that is played but not learned is `{"content": text, "weight": 0}`, as in OpenAI's fine-tuning files.
        """
        return []
