"""The interface that a night expects from an environment, in which a model acts for several turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Split = Literal["train", "test"]
State = dict[str, Any]
Step = tuple[State, str, float, bool, bool, Mapping[str, Any]]


@dataclass(frozen=True)
class Problem:
    """One problem of a benchmark. `truth` has the format that the benchmark's own `score` reads.

    `subject` is used only in the exam's metrics; problems that differ only in their subject count as equal.
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
    A class needs `name` and the methods up to `step`; the methods after it have defaults.
    """

    name: str

    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems, each the starting point of an episode, in a fixed order."""
        ...

    def kind(self, problem: Problem) -> str:
        """Return the kind of episode that starts from this problem; a night tracks returns by kind."""
        ...

    def reset(self, problem: Problem) -> tuple[State, str]:
        """Start an episode: return its initial state and its first observation, which includes the rules."""
        ...

    def step(self, state: State, text: str) -> Step:
        """Take the action given in `text`; return the new state, observation, reward, terminated, truncated and info.

        `terminated`: the episode has ended; `truncated`: it has used up its turns. The given state is not modified.
        All keys of `info` are optional: `valid`, whether the text was a valid action (default true); `parts`, the
        reward's components by name; `action`, the action as understood; `agent`, which agent acted; `value`, the
        episode's value so far, which the exam counts (default: the sum of rewards; 1 is the value of a good player).
        """
        ...

    def drawing(self, state: State) -> str:
        """Return a drawing of a state as SVG, for the morning report; empty by default."""
        return ""

    def characters(self, state: State) -> str:
        """Return a drawing of a state as lines of characters, for the terminal; empty by default."""
        return ""

    def solutions(self) -> Sequence[tuple[Problem, Sequence[str | Mapping[str, Any]]]]:
        """Return training problems, each with the texts that a teacher wrote, one per turn; empty by default.

        A turn that is played but not trained on is `{"content": text, "weight": 0}`, as in OpenAI's fine-tuning files.
        """
        return []
