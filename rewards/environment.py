"""The interface of an environment, in which a model acts for several turns instead of answering once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Split = Literal["train", "test"]
State = dict[str, Any]
Step = tuple[State, str, float, bool, bool, Mapping[str, Any]]


@dataclass(frozen=True)
class Problem:
    """One problem of a benchmark. `truth` has the format that the benchmark's own `score` reads.

    `subject` serves only the exam's metrics. Problems that differ only in their subject compare equal.
    """

    problem_id: str
    benchmark: str
    question: str
    truth: str
    level: str | None = None
    subject: str | None = field(default=None, compare=False)


class Environment(Protocol):
    """Multi-turn episodes with a Gymnasium-like interface. Actions and observations are text; the state is JSON.

    The state contains everything that an episode depends on, so an episode can be continued or replayed from any state.
    A class must define `name`, `problems`, `kind`, `reset` and `step`. The other methods have defaults.
    """

    name: str

    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems in a fixed order. Each problem is the starting point of one episode."""
        ...

    def kind(self, problem: Problem) -> str:
        """Return the kind of episode that starts from this problem. A night tracks one solve rate per kind."""
        ...

    def reset(self, problem: Problem) -> tuple[State, str]:
        """Start an episode, and return its initial state and its first observation, which includes the rules."""
        ...

    def step(self, state: State, text: str) -> Step:
        """Take the action given in `text`; return the new state, observation, reward, terminated, truncated and info.

        `terminated`: the episode has come to its end. `truncated`: it has used up its turns. `state` is not modified.
        All keys of `info` are optional: `valid`, whether the text was a valid action (default true); `parts`, a dict of
        the reward's named components; `action`, the action as the environment understood it; `value`, the episode's
        value so far, which the exam counts (default: the sum of rewards; a good player reaches 1); and `next`, the
        number of the agent that acts next (default 0). Agents are numbered in the order of their first turns. Each sees
        only its own turns, so its first observation, too, includes the rules.
        """
        ...

    def mastered(self, level: str, rate: float) -> bool:
        """Return whether a student with this solve rate at a level may practise the next one. By default: always."""
        return True

    def drawing(self, state: State) -> str:
        """Return an SVG drawing of a state for the morning report. By default, this is an empty string."""
        return ""

    def characters(self, state: State) -> str:
        """Return a drawing of a state in characters for the terminal. By default, this is an empty string."""
        return ""

    def solutions(self) -> Sequence[tuple[Problem, Sequence[str | Mapping[str, Any]]]]:
        """Return training problems, each with a teacher's texts, one per turn of the episode. By default, return [].

        A turn `{"content": text, "weight": 0}` is played but not trained on, as in OpenAI's fine-tuning files.
        """
        return []
