"""Runs many untrusted programs, each against tests that it never sees. See docs/security.md for the threat model."""

import os
import time
from collections import deque
from collections.abc import Collection, Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import Self

from rewards.programs import bubblewrap, policy
from rewards.programs.policy import Layer, SandboxUnavailable
from rewards.programs.worker import Program, SandboxWorker, scored
from rewards.verifier import Score

MAX_SOURCE_BYTES = 1 << 20
MAX_STUCK = 8  # once this many workers have missed their deadline, no more programs run: each miss costs minutes
__all__ = ["Layer", "Program", "Sandbox", "SandboxUnavailable"]


def _canary(body: str) -> Program:
    return Program(f"def f(x):\n    return {body}", ("assert f(1) == 2",))


RIGHT = _canary("x + 1")
# For each canary: the program, the verdicts that pass, and the sandbox layer that must be on for them (None: any).
CANARIES: tuple[tuple[Program, tuple[str, ...], Layer | None], ...] = (
    (RIGHT, ("correct",), None),
    (_canary("x"), ("wrong",), None),
    (_canary("__import__('_socket').socket(2, 1, 0) and 2"), ("forbidden", "crashed"), "seccomp"),
    (_canary("open('/etc/passwd') and 2"), ("forbidden", "crashed"), None),
)


class Sandbox:
    """A pool of workers. Each worker is a warden inside bubblewrap, which forks a judge and a candidate per program.

    `workers` is the number of workers (None: one per core). `without` names the sandbox layers to leave out, because
    the kernel lacks them or a test examines the other layers. Entering the pool's context starts the workers and runs
    the canaries; it raises SandboxUnavailable if the workers or the canaries fail.
    """

    def __init__(self, workers: int | None = None, without: Collection[Layer] = ()) -> None:
        self.size = workers or len(os.sched_getaffinity(0))
        self.without = frozenset(without)
        self.seccomp, self.ruleset = b"none", -1
        self.stuck = 0
        self.workers: list[SandboxWorker] = []

    def __enter__(self) -> Self:
        try:
            if "seccomp" not in self.without:
                self.seccomp = policy.seccomp_program("pid_namespace" not in self.without)
            if "landlock" not in self.without:
                self.ruleset = policy.landlock_ruleset(bubblewrap.readable_folders())
            for _ in range(self.size):
                self.workers.append(self._new_worker())
            for worker in self.workers:
                worker.wait_until_ready()
            self._try_canaries()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers and every process that runs in them."""
        for worker in self.workers:
            worker.close()
        self.workers = []
        if self.ruleset >= 0:
            os.close(self.ruleset)
            self.ruleset = -1

    def run(self, programs: Sequence[Program]) -> list[Score]:
        """Return a score for each program, in the same order.

        If the sandbox fails on a program, it tries again in a new worker. If it fails again but then passes a canary,
        the program is to blame: its verdict is `crashed`. Once MAX_STUCK workers are stuck, no more programs run.
        """
        scores = self._run(programs)
        for index, (program, score) in enumerate(zip(programs, scores, strict=True)):
            if score.verdict == "grader_failed" and program.tests and self.stuck < MAX_STUCK:
                scores[index] = self._retry(program, score)
        return scores

    def _retry(self, program: Program, first: Score) -> Score:
        self._replace(self.workers[0])  # the first worker takes a program that runs alone
        second = self._run([program])[0]
        if second.verdict != "grader_failed" or "test cannot" in second.detail:
            return second
        passes = self._run([RIGHT])[0].verdict == "correct"
        return scored("crashed", f"twice: {first.detail}", second.seconds) if passes else second

    def _run(self, programs: Sequence[Program]) -> list[Score]:
        scores = {index: refused for index, program in enumerate(programs) if (refused := refusal(program))}
        waiting = deque((index, program) for index, program in enumerate(programs) if index not in scores)
        while len(scores) < len(programs):
            if self.stuck >= MAX_STUCK:
                scores |= {index: scored("grader_failed", "the sandbox is stuck", 0.0) for index, _ in waiting}
                waiting.clear()
            for worker in self.workers:
                if waiting and worker.idle:
                    worker.begin(*waiting.popleft())
            for worker in _wait_for_answers([worker for worker in self.workers if not worker.idle]):
                self.stuck += time.monotonic() > worker.deadline
                index, score = worker.finish()
                scores[index] = score
                if not worker.alive:
                    self._replace(worker)
        return [scores[index] for index in range(len(programs))]

    def _new_worker(self) -> SandboxWorker:
        try:
            return SandboxWorker(self.seccomp, self.ruleset, self.without)
        except OSError as error:  # no process, descriptor or memory is left
            raise SandboxUnavailable(f"the sandbox does not start: {error}") from error

    def _replace(self, worker: SandboxWorker) -> None:
        fresh = self._new_worker()  # first: if it cannot start, `close` still has each worker once
        self.workers[self.workers.index(worker)] = fresh
        worker.close()
        fresh.wait_until_ready()

    def _try_canaries(self) -> None:
        tried = [(program, allowed) for program, allowed, needs in CANARIES if needs not in self.without]
        scores = self._run([program for program, _ in tried])
        for (program, allowed), score in zip(tried, scores, strict=True):
            if score.verdict not in allowed:
                line = program.source.splitlines()[-1].strip()
                raise SandboxUnavailable(
                    f"the sandbox does not hold: {line!r} came back as {score.verdict} ({score.detail}); "
                    "`nightschool doctor` says what this machine lacks"
                )


def refusal(program: Program) -> Score | None:
    """Return the score of a program that cannot be run (it is empty, huge or not text, or has no tests), else None."""
    if not program.tests:
        return scored("grader_failed", "there is no test", 0.0)
    if not program.source.strip():
        return scored("no_answer", "an empty program", 0.0)
    if "\0" in program.source:
        return scored("crashed", "the source has NUL bytes", 0.0)
    try:
        size = len(program.source.encode())
    except UnicodeEncodeError:
        return scored("crashed", "the source is not valid Unicode", 0.0)
    return scored("crashed", f"a source of {size} bytes", 0.0) if size > MAX_SOURCE_BYTES else None


def _wait_for_answers(busy: Sequence[SandboxWorker]) -> list[SandboxWorker]:
    """Wait for at least one busy worker; return those that have answered, died or missed their deadline."""
    done: list[SandboxWorker] = []
    while busy and not done:
        answered = wait([worker.control for worker in busy], 1.0 if all(worker.alive for worker in busy) else 0.0)
        now = time.monotonic()
        done = [each for each in busy if each.control in answered or not each.alive or now > each.deadline]
    return done
