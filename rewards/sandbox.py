"""Run many untrusted programs, each against tests that it never sees. Threat model: docs/security.md."""

import os
import selectors
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rewards.programs.policy import Layer, SandboxUnavailable
from rewards.programs.program import Program
from rewards.programs.worker import JailProcess, Policy, scored
from rewards.verifier import Score

MAX_SOURCE_BYTES = 1 << 20
MAX_STUCK = 8  # workers that miss their deadline before nothing more is run: each would cost minutes
__all__ = ["Layer", "Program", "Sandbox", "SandboxUnavailable"]


@dataclass(frozen=True)
class Canary:
    """A program whose verdict is known, and the layer that this verdict depends on."""

    program: Program
    allowed: frozenset[str]
    needs: Layer | None = None


def _canary(body: str, *allowed: str, needs: Layer | None = None) -> Canary:
    return Canary(Program(f"def f(x):\n    return {body}", ("assert f(1) == 2",)), frozenset(allowed), needs)


CANARIES = (
    _canary("x + 1", "correct"),
    _canary("x", "wrong"),
    _canary("__import__('_socket').socket(2, 1, 0) and 2", "forbidden", "crashed", needs="seccomp"),
    _canary("open('/etc/passwd') and 2", "forbidden", "crashed"),
)


class Sandbox:
    """A pool of workers; each is a warden inside bubblewrap that forks a judge and a candidate for every program.

    `workers`: default one per core. `without`: layers to switch off, because the kernel lacks them or because a test
    examines the others. Entering starts the workers and runs the canaries; raises SandboxUnavailable.
    """

    def __init__(self, workers: int | None = None, without: Collection[Layer] = ()) -> None:
        self.size = workers or len(os.sched_getaffinity(0))
        self.without = frozenset(without)
        self.stuck = 0
        self.workers: list[JailProcess] = []

    def __enter__(self) -> Self:
        try:
            self.policy = Policy.compile(self.without)
            self.workers = [JailProcess(self.policy, self.without) for _ in range(self.size)]
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
        """End all workers and whatever runs in them."""
        for worker in self.workers:
            worker.close()
        self.workers = []
        if hasattr(self, "policy"):
            self.policy.close()
            del self.policy

    def run(self, programs: Sequence[Program]) -> list[Score]:
        """Return a score for each program, in the same order.

        Where the sandbox itself failed, the program is run again in a new worker. If that fails too although the canary
        passes, the program is to blame and gets `crashed`. Once MAX_STUCK workers are stuck, nothing more is run.
        """
        scores = self._run(programs)
        for index in [index for index, score in enumerate(scores) if score.verdict == "grader_failed"]:
            if self.stuck < MAX_STUCK:
                scores[index] = self._retry(programs[index], scores[index])
        return scores

    def _retry(self, program: Program, first: Score) -> Score:
        self.workers[0].close()
        self.workers[0] = self._start_worker()
        second = self._run([program], self.workers[:1])[0]
        if second.verdict != "grader_failed" or not program.tests or "test cannot" in second.detail:
            return second
        if not self.workers[0].alive:
            self.workers[0] = self._start_worker()
        passes = self._run([CANARIES[0].program], self.workers[:1])[0].verdict == "correct"
        return scored("crashed", f"twice: {first.detail}", second.seconds) if passes else second

    def _run(self, programs: Sequence[Program], workers: Sequence[JailProcess] | None = None) -> list[Score]:
        scores: dict[int, Score] = {}
        waiting = deque(enumerate(programs))
        pool = list(self.workers if workers is None else workers)
        while len(scores) < len(programs):
            if self.stuck >= MAX_STUCK:
                scores |= {index: scored("grader_failed", "the sandbox is stuck", 0.0) for index, _ in waiting}
                waiting.clear()
            for worker in pool:
                while waiting and worker.idle:
                    index, program = waiting.popleft()
                    refused = refusal(program)
                    if refused is not None:
                        scores[index] = refused
                    else:
                        worker.begin(index, program)
            for worker in _wait_for_answers([worker for worker in pool if not worker.idle]):
                self.stuck += time.monotonic() > worker.deadline
                index, score = worker.finish()
                scores[index] = score
                if not worker.alive:
                    pool[pool.index(worker)] = self._replace(worker)
        return [scores[index] for index in range(len(programs))]

    def _replace(self, worker: JailProcess) -> JailProcess:
        worker.close()
        fresh = self._start_worker()
        self.workers[self.workers.index(worker)] = fresh
        return fresh

    def _start_worker(self) -> JailProcess:
        worker = JailProcess(self.policy, self.without)
        worker.wait_until_ready()
        return worker

    def _try_canaries(self) -> None:
        tried = [canary for canary in CANARIES if canary.needs not in self.without]
        for canary, score in zip(tried, self._run([canary.program for canary in tried]), strict=True):
            if score.verdict not in canary.allowed:
                line = canary.program.source.splitlines()[-1].strip()
                raise SandboxUnavailable(
                    f"the sandbox does not hold: {line!r} came back as {score.verdict} ({score.detail}); "
                    "`nightschool doctor` says what this machine lacks"
                )


def refusal(program: Program) -> Score | None:
    """Return the score of a program that is not worth running (empty, not text, huge), else None."""
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


def _wait_for_answers(busy: Sequence[JailProcess]) -> list[JailProcess]:
    """Wait for at least one worker; return those that answered, died or missed their deadline."""
    with selectors.DefaultSelector() as selector:
        for worker in busy:
            if not worker.alive:
                return [worker]
            selector.register(worker.control, selectors.EVENT_READ, worker)
        while busy:
            ready = [key.data for key, _ in selector.select(1.0)]
            late = [worker for worker in busy if time.monotonic() > worker.deadline]
            if ready or late:
                return ready or late
    return []
