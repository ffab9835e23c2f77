"""Unit tests as the truth of a programming problem, and the scoring of many programs at once."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from conf.schema import SandboxConfig
from conf.storage.log import log
from rewards.programs.policy import tolerated
from rewards.sandbox import Program, Sandbox, SandboxUnavailable
from rewards.verifier import Attempt, Score

DEFAULT_SANDBOX = SandboxConfig()


@dataclass(frozen=True)
class ProgramTests:
    """The setup that runs before the tests, the tests in order, and the name of the function that the tests call."""

    setup: str
    tests: tuple[str, ...]
    entry_point: str

    def truth(self) -> str:
        """Return the problem's truth: JSON with setup, tests and entry_point."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, truth: str) -> "ProgramTests | None":
        """Return the tests in a truth, or None if the truth is not in the format of `truth()` or has no test."""
        try:
            fields = json.loads(truth)
        except (ValueError, RecursionError):
            return None
        match fields:
            case {"setup": str(setup), "tests": [_, *_] as tests, "entry_point": str(entry_point)}:
                return cls(setup, tuple(tests), entry_point) if all(isinstance(test, str) for test in tests) else None
        return None

    def program(self, source: str, limits: SandboxConfig = DEFAULT_SANDBOX) -> Program:
        """Return `source` and these tests as a program for the sandbox, with the given time and memory limits."""
        return Program(source, self.tests, self.setup, self.entry_point, limits.seconds, limits.memory_mb)


def score_programs(
    attempts: Sequence[Attempt], config: SandboxConfig, source: Callable[[Attempt, ProgramTests], str | None]
) -> list[Score]:
    """Score each attempt by the tests in its problem's truth. `source` returns an attempt's program, or None."""

    def item(attempt: Attempt) -> Program | Score:
        tests = ProgramTests.read(attempt.problem.truth)
        if tests is None:
            return Score.of("grader_failed", "the truth is not JSON of setup, tests and entry_point")
        program = source(attempt, tests)
        return Score.of("no_answer", "no program") if program is None else tests.program(program, config)

    return judged([item(attempt) for attempt in attempts], config)


def judged(items: Sequence[Program | Score], config: SandboxConfig = DEFAULT_SANDBOX) -> list[Score]:
    """Return one score per item, in the same order. Programs run in the sandbox; scores are passed through.

    One sandbox runs all programs, and identical programs run once. If the sandbox cannot be opened, every program gets
    `grader_failed` with the reason.
    """
    programs = list(dict.fromkeys(item for item in items if isinstance(item, Program)))
    scores = dict(zip(programs, _run(programs, config), strict=True))
    return [scores[item] if isinstance(item, Program) else item for item in items]


def _run(programs: Sequence[Program], config: SandboxConfig) -> list[Score]:
    if not programs:
        return []
    try:
        with Sandbox(without=tolerated(config)) as sandbox:
            return sandbox.run(programs)
    except SandboxUnavailable as reason:
        log.warning("no program can be judged: %s", reason)
        return [Score.of("grader_failed", " ".join(str(reason).split()))] * len(programs)
