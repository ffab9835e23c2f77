"""The truth of a programming problem: the tests that a program must pass; and many programs judged by them at once."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass

from rewards.sandbox import Layer, Program, Sandbox, SandboxUnavailable
from rewards.verifier import Attempt, Problem, Score

NO_PROGRAM = Score(0.0, "no_answer", "no program", {"correct": 0.0})
UNREADABLE = Score(None, "grader_failed", "the truth is not JSON of setup, tests and entry_point")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProgramTests:
    """What is run before the tests, the tests in their order, and the name of the function that they call."""

    setup: str
    tests: tuple[str, ...]
    entry_point: str

    def truth(self) -> str:
        """As a problem carries it: JSON of setup, tests and entry_point."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, truth: str) -> "ProgramTests | None":
        """From a problem's truth; None where that is not such JSON or holds no test."""
        try:
            fields = json.loads(truth)
        except (ValueError, RecursionError):
            return None
        match fields:
            case {"setup": str(setup), "tests": [_, *_] as tests, "entry_point": str(entry_point)}:
                return cls(setup, tuple(tests), entry_point) if all(isinstance(test, str) for test in tests) else None
        return None

    def program(self, source: str, seconds: float, memory_mb: int) -> Program:
        """`source` with these tests, for the sandbox; `seconds` of CPU time."""
        return Program(source, self.tests, self.setup, self.entry_point, seconds, memory_mb)


def judged(
    items: Sequence[Program | Score], workers: int | None = None, without: Collection[Layer] = ()
) -> list[Score]:
    """One score an item, in the same order: of a program the sandbox's, a score stays what it is.

    One sandbox is opened for all, with so many workers (None: one a core) and without those layers; identical programs
    run once. Where it cannot be opened, every program is `grader_failed` with the reason.
    """
    programs = list(dict.fromkeys(item for item in items if isinstance(item, Program)))
    scores = dict(zip(programs, _run(programs, workers, without), strict=True))
    return [scores[item] if isinstance(item, Program) else item for item in items]


def failing_references(
    score: Callable[[Sequence[Attempt]], list[Score]], references: Iterable[tuple[Problem, str]]
) -> dict[str, Score]:
    """The problems whose own reference fails their tests, by id, named in the log. Runs all: not for every night."""
    pairs = list(references)
    scores = score([Attempt(problem, reference) for problem, reference in pairs])
    judgements = zip(pairs, scores, strict=True)
    failing = {problem.problem_id: result for (problem, _), result in judgements if result.reward == 0.0}
    for problem_id, result in failing.items():
        log.warning("%s is excluded: its own reference is %s (%s)", problem_id, result.verdict, result.detail)
    return failing


def _run(programs: Sequence[Program], workers: int | None, without: Collection[Layer]) -> list[Score]:
    if not programs:
        return []
    try:
        with Sandbox(workers, without) as sandbox:
            return sandbox.run(programs)
    except SandboxUnavailable as reason:
        log.warning("no program can be judged: %s", reason)
        return [Score(None, "grader_failed", " ".join(str(reason).split()))] * len(programs)
