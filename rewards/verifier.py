"""The interface of a benchmark, and the attempts and scores that it exchanges with a night."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

from rewards.environment import Environment, Problem, Split

Verdict = Literal[
    "correct",
    "wrong",
    "no_answer",
    "timeout",
    "out_of_memory",
    "crashed",
    "forbidden",
    "grader_failed",
    "judged",  # by the learned reward, because no truth is known
    "given",  # the benchmark's own solution, added to the student's answers
]


@dataclass(frozen=True)
class Attempt:
    """One completion of a problem's prompt; `tokens` is its length, including the end token."""

    problem: Problem
    completion: str
    group: int = 0
    finish_reason: str = "stop"
    tokens: int = 0


@dataclass(frozen=True)
class Turn:
    """One turn of an episode: what the model saw and wrote, and the result.

    `state`: the state before the turn, as JSON. `value`: the episode's value after the turn, as the exam counts it.
    """

    state: Mapping[str, Any]
    observation: str
    text: str
    action: str
    agent: int
    valid: bool
    reward: float
    parts: Mapping[str, float]
    value: float


@dataclass(frozen=True)
class Score:
    """The verdict on an attempt. `reward` is None, never 0, if the grader itself failed.

    `turns`: the turns of an episode, if the benchmark has an environment.
    """

    reward: float | None
    verdict: Verdict
    detail: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    turns: Sequence[Turn] = ()

    @classmethod
    def of(cls, verdict: Verdict, detail: str = "", seconds: float = 0.0) -> "Score":
        """Return the score for a verdict, with a reward of 1 for `correct`, None for `grader_failed`, else 0."""
        if verdict == "grader_failed":
            return cls(None, verdict, detail, seconds=seconds)
        correct = float(verdict == "correct")
        return cls(correct, verdict, detail, {"correct": correct}, seconds)

    @property
    def solved(self) -> float:
        """The solved fraction of the problem, from 0 to 1; for an episode, its value, clipped to this range."""
        return min(max(self.parts.get("value", float(self.verdict == "correct")), 0.0), 1.0)


class Benchmark(Protocol):
    """Problems with a known truth, the prompts that ask them, and the grading of answers.

    A class needs `name`, `problems` and `score`. The other members have defaults; a class that does not inherit from
    this one gets them from `rewards.data.benchmarks.configured`.
    """

    name: str
    splits: Sequence[Split] = ("train", "test")
    """The splits that have problems."""
    excluded: Mapping[Split, Sequence[str]] = MappingProxyType({})
    """For each split that `problems` has read, the ids of problems left out because their truth is unusable."""
    instruction: str = ""
    """The text at the start of every prompt, which says what format the answer must have."""
    answer_line: str | None = None
    """The last line of a worked solution, with `{}` for the answer; None if solutions are never rewritten."""
    truth_marker: str = ""
    """The marker that precedes the answer in a truth."""
    bounded: bool = False
    """Whether `score` limits its own time. If not, it runs in a child process that is stopped after an hour."""
    runs_programs: bool = False
    """Whether `score` runs programs and is therefore faster with additional machines."""
    environment: Environment | None = None
    """The environment; None if a model answers only once. With one, a completion is a JSON list of its turns' texts."""

    def problems(self, split: Split) -> list[Problem]:
        """Return all problems of a split, in a fixed order."""
        ...

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return training problems with the dataset's own solutions, as a model would write them; empty by default.

        These solutions are graded like any others before the student is trained on them.
        """
        return []

    def draw(self, seed: str, count: int) -> list[Problem]:
        """Return the training problems to choose from: all, or `count` drawn with the seed if the supply is endless."""
        return self.problems("train")

    def kind(self, problem: Problem) -> str:
        """Return the name under which the problem's solve rate is tracked; by default, its id."""
        return problem.problem_id

    def prompt(self, problem: Problem) -> str:
        """Return the user's turn: the instruction, then the question.

        The engine and the trainer compute this common start of prompts once (on a CPU, in whole blocks of 32 tokens).
        """
        return f"{self.instruction}\n{problem.question}" if self.instruction else problem.question

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Return one score per attempt, in the same order. Never raises, whatever a model wrote."""
        ...

    def question_prompt(self, examples: Sequence[Problem]) -> str:
        """Return a prompt that asks a student for a new problem like `examples`; empty if students cannot pose any."""
        return ""

    def proposed(self, text: str) -> Problem | None:
        """Return the problem that a student wrote, with its truth computed; None if the text is not a usable problem.

        Never raises, whatever a model wrote.
        """
        return None
