"""The `Benchmark` interface, and the attempts and scores that a night and a benchmark exchange."""

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
    "judged",  # scored by the learned reward, because the problem has no truth
    "given",  # the benchmark's own solution, added to the student's answers
]


@dataclass(frozen=True)
class Attempt:
    """One completion of a problem's prompt. `tokens` is the completion's length, including the end token."""

    problem: Problem
    completion: str
    group: int = 0
    finish_reason: str = "stop"
    tokens: int = 0


@dataclass(frozen=True)
class Turn:
    """One turn of an episode: what the model saw, what it wrote, and what resulted.

    `state` is the JSON state before the turn. `value` is the episode's value after it; the exam counts the last turn's.
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

    `turns` lists the turns of an episode. It is empty if the benchmark has no environment.
    """

    reward: float | None
    verdict: Verdict
    detail: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    turns: Sequence[Turn] = ()

    @classmethod
    def of(cls, verdict: Verdict, detail: str = "", seconds: float = 0.0) -> "Score":
        """Return the score for a verdict. Its reward is 1 for `correct`, None for `grader_failed` and 0 otherwise."""
        if verdict == "grader_failed":
            return cls(None, verdict, detail, seconds=seconds)
        correct = float(verdict == "correct")
        return cls(correct, verdict, detail, {"correct": correct}, seconds)

    @property
    def solved(self) -> float:
        """How much of the problem was solved, from 0 to 1. For an episode, this is its value, clipped to that range."""
        return min(max(self.parts.get("value", float(self.verdict == "correct")), 0.0), 1.0)


class Benchmark(Protocol):
    """Problems with a known truth, the prompts that ask them, and the grading of answers.

    A class must define `name`, `problems` and `score`; all other members have defaults. If the class does not inherit
    from `Benchmark`, `rewards.data.benchmarks.configured` adds the defaults to it. If it does, it may define
    `score_one` in place of `score`.
    """

    name: str
    splits: Sequence[Split] = ("train", "test")
    """The splits for which the benchmark has problems."""
    excluded: Mapping[Split, Sequence[str]] = MappingProxyType({})
    """For each split that `problems` has read, the ids of the problems omitted because their truth is unusable."""
    instruction: str = ""
    """The text that starts every prompt and says what format the answer must have."""
    answer_line: str | None = None
    """A template for a worked solution's last line, with `{}` for the answer. None: solutions are never rewritten."""
    truth_marker: str = ""
    """The marker in front of the answer in a truth (`####` for GSM8K), or an empty string if there is none."""
    truth_is_list: bool = False
    """Whether a truth is a JSON list of texts, each of which is right."""
    bounded: bool = False
    """Whether `score` limits its own time. If not, it is called in a child process that is killed after an hour."""
    runs_programs: bool = False
    """Whether `score` runs programs. If so, a night on several machines divides the answers among them."""
    environment: Environment | None = None
    """The environment for multi-turn problems, else None. Completions are then JSON lists of the turns' texts."""

    def problems(self, split: Split) -> list[Problem]:
        """Return all problems of a split, in a fixed order."""
        ...

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return training problems, each with the dataset's own solution as a model would write it; empty by default.

        A night grades these solutions like a model's answers before it trains the student on them.
        """
        return []

    def draw(self, seed: str, count: int) -> list[Problem]:
        """Return training problems to choose from: all or, if the supply is endless, `count` drawn with `seed`."""
        return self.problems("train")

    def kind(self, problem: Problem) -> str:
        """Return the name under which a night tracks the problem's solve rate. By default, this is the problem's id."""
        return problem.problem_id

    def mastered(self, level: str, rate: float) -> bool:
        """Return whether a student with this solve rate at a level may practise the next one. By default: always."""
        return True

    def prompt(self, problem: Problem) -> str:
        """Return the user's turn: the instruction, then the question.

        Prompts share the instruction, so engine and trainer process it once (on a CPU, in whole blocks of 32 tokens).
        """
        return f"{self.instruction}\n{problem.question}" if self.instruction else problem.question

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Return one score per attempt, in the same order. Never raises, whatever a model wrote."""
        return [self.score_one(attempt) for attempt in attempts]

    def score_one(self, attempt: Attempt) -> Score:
        """Return one attempt's score. Enough for a benchmark that gains nothing from grading attempts together."""
        raise NotImplementedError

    def question_prompt(self, examples: Sequence[Problem]) -> str:
        """Return a prompt that asks the student to write a problem like `examples`; empty if that is not supported."""
        return ""

    def proposed(self, text: str) -> Problem | None:
        """Return the problem that a student wrote as `text`, with its computed truth; None if it is not usable.

        Never raises, whatever a model wrote.
        """
        return None
