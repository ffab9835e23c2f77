"""Runs untrusted programs against tests that they never see, fast and many; docs/sandbox.md is its threat model."""

import os
import selectors
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, get_args

from rewards.jail.policy import Layer, SandboxUnavailable
from rewards.jail.worker import Policy, Worker, scored
from rewards.verifier import Score

MAX_SOURCE_BYTES = 1 << 20
MOST_STUCK = 8  # workers that did not answer in time: then it is the sandbox, and each further one would cost minutes
__all__ = ["Layer", "Program", "Sandbox", "SandboxUnavailable"]


@dataclass(frozen=True)
class Program:
    """An untrusted source and the asserts that it must pass.

    `setup` runs before the tests, on their side. `entry_point` is the function that the tests call. `seconds` of CPU
    time, and as long without using any; `memory_mb` of address space on top of Python's own.
    """

    source: str
    tests: tuple[str, ...]
    setup: str = ""
    entry_point: str | None = None
    seconds: float = 5.0
    memory_mb: int = 512


@dataclass(frozen=True)
class Canary:
    """A program whose verdict is known, and the layer without which it is not."""

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
    """A pool of workers, each a bubblewrap with a warden that forks a judge and a candidate for every program.

    `workers`: one a core by default. `without`: layers to do without, where the kernel lacks them or a test shows what
    the others hold. Entering starts the workers and tries the canaries; raises SandboxUnavailable.
    """

    def __init__(self, workers: int | None = None, without: Collection[Layer] = ()) -> None:
        unknown = set(without) - set(get_args(Layer))
        if unknown:
            raise ValueError(f"no layer is called {', '.join(sorted(unknown))}; there are {', '.join(get_args(Layer))}")
        self.size = workers or len(os.sched_getaffinity(0))
        self.without = frozenset(without)
        self.stuck = 0
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        try:
            self.policy = Policy.compile(self.without)
            self.workers = [Worker(self.policy, self.without) for _ in range(self.size)]
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
        """Ends all workers and whatever runs in them."""
        for worker in self.workers:
            worker.close()
        self.workers = []
        if hasattr(self, "policy"):
            self.policy.close()
            del self.policy

    def run(self, programs: Sequence[Program]) -> list[Score]:
        """A score for each program, in the same order.

        What the sandbox itself failed at is tried again in a fresh worker; if that fails too while the canary passes,
        the program is to blame and has crashed. Once MOST_STUCK workers were stuck, nothing is tried any more.
        """
        scores = self._run(programs)
        for index in [index for index, score in enumerate(scores) if score.verdict == "grader_failed"]:
            if self.stuck < MOST_STUCK:
                scores[index] = self._again(programs[index], scores[index])
        return scores

    def _again(self, program: Program, first: Score) -> Score:
        self.workers[0].close()
        self.workers[0] = self._fresh()
        second = self._run([program], self.workers[:1])[0]
        if second.verdict != "grader_failed" or not program.tests or "test cannot" in second.detail:
            return second
        if not self.workers[0].alive:
            self.workers[0] = self._fresh()
        passes = self._run([CANARIES[0].program], self.workers[:1])[0].verdict == "correct"
        return scored("crashed", f"twice: {first.detail}", second.seconds) if passes else second

    def _run(self, programs: Sequence[Program], workers: Sequence["Worker"] | None = None) -> list[Score]:
        scores: dict[int, Score] = {}
        waiting = deque(enumerate(programs))
        pool = list(self.workers if workers is None else workers)
        while len(scores) < len(programs):
            if self.stuck >= MOST_STUCK:
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
            for worker in _answering([worker for worker in pool if not worker.idle]):
                self.stuck += time.monotonic() > worker.deadline
                index, score = worker.finish()
                scores[index] = score
                if not worker.alive:
                    pool[pool.index(worker)] = self._replaced(worker)
        return [scores[index] for index in range(len(programs))]

    def _replaced(self, worker: "Worker") -> "Worker":
        worker.close()
        fresh = self._fresh()
        self.workers[self.workers.index(worker)] = fresh
        return fresh

    def _fresh(self) -> "Worker":
        worker = Worker(self.policy, self.without)
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
    """The verdict on what is not worth running: an empty source, one that is no text, or a huge one."""
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


def _answering(busy: Sequence[Worker]) -> list[Worker]:
    """The workers that have answered, died or passed their deadline; waits for at least one."""
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
