"""Runs untrusted programs against tests that they never see, fast and many; docs/sandbox.md is its threat model."""

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self, get_args

from rewards.jail import bubblewrap, policy
from rewards.verifier import Score

Layer = Literal["bubblewrap", "landlock", "seccomp", "limits", "pid_namespace"]
START_SECONDS = 30.0  # a worker that is not ready by then never will be
LOST_SECONDS = 60.0  # beyond a program's own limits, before a worker counts as stuck
MAX_SOURCE_BYTES = 1 << 20

log = logging.getLogger(__name__)


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


class SandboxUnavailable(Exception):
    """This machine cannot isolate programs; the text says what is missing and what to do."""


CANARIES = (
    (Program("def f(x):\n    return x + 1", ("assert f(1) == 2",)), {"correct"}),
    (Program("def f(x):\n    return x", ("assert f(1) == 2",)), {"wrong"}),
    (
        Program("import _socket\ndef f(x):\n    return _socket.socket(2, 1, 0) and 2", ("assert f(1) == 2",)),
        {"forbidden", "crashed"},
    ),
    (Program("def f(x):\n    return open('/etc/passwd') and 2", ("assert f(1) == 2",)), {"forbidden", "crashed"}),
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
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        try:
            self.policy = Policy.compile(self.without)
            self.workers = [Worker(self.policy, self.without) for _ in range(self.size)]
            for worker in self.workers:
                worker.wait_until_ready()
            self._try_canaries()
        except (SandboxUnavailable, policy.PolicyUnavailable) as error:
            self.close()
            raise SandboxUnavailable(str(error)) from error
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
        the program is to blame and has crashed.
        """
        scores = self._run(programs)
        for index in [index for index, score in enumerate(scores) if score.verdict == "grader_failed"]:
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
        passes = self._run([CANARIES[0][0]], self.workers[:1])[0].verdict == "correct"
        return _score("crashed", f"twice: {first.detail}", second.seconds) if passes else second

    def _run(self, programs: Sequence[Program], workers: Sequence["Worker"] | None = None) -> list[Score]:
        scores: dict[int, Score] = {}
        waiting = deque(enumerate(programs))
        pool = list(self.workers if workers is None else workers)
        while len(scores) < len(programs):
            for worker in pool:
                while waiting and worker.idle:
                    index, program = waiting.popleft()
                    refused = refusal(program)
                    if refused is not None:
                        scores[index] = refused
                    else:
                        worker.begin(index, program)
            for worker in _answering([worker for worker in pool if not worker.idle]):
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
        for (program, allowed), score in zip(CANARIES, self._run([program for program, _ in CANARIES]), strict=True):
            if score.verdict not in allowed and not self.without:
                line = program.source.splitlines()[-1].strip()
                raise SandboxUnavailable(
                    f"the sandbox does not hold: {line!r} came back as {score.verdict} ({score.detail}); "
                    "`nightschool doctor` says what this machine lacks"
                )


@dataclass
class Policy:
    """What all workers share: the compiled filter and the ruleset's descriptor (-1: none)."""

    seccomp: bytes
    ruleset: int

    @classmethod
    def compile(cls, without: Collection[Layer]) -> "Policy":
        """Raises PolicyUnavailable where a layer that is wanted cannot be had."""
        seccomp = b"none" if "seccomp" in without else policy.seccomp_program()
        folders = bubblewrap.readable_folders()
        return cls(seccomp, -1 if "landlock" in without else policy.landlock_ruleset(folders))

    def close(self) -> None:
        """Closes the ruleset."""
        if self.ruleset >= 0:
            os.close(self.ruleset)


class Worker:
    """A warden in its bubblewrap, judging one program at a time."""

    def __init__(self, shared: Policy, without: Collection[Layer]) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.reason, self.reason_in = os.pipe()
        os.set_blocking(self.reason, False)
        self.index: int | None = None
        self.deadline = 0.0
        self.alive = True
        with theirs:
            passed = [theirs.fileno(), *([shared.ruleset] if shared.ruleset >= 0 else [])]
            self.process = subprocess.Popen(
                _command(theirs.fileno(), shared.ruleset, without),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                pass_fds=passed,
                env=bubblewrap.ENVIRONMENT,
            )
        self.control.settimeout(START_SECONDS)
        with contextlib.suppress(OSError):  # it has ended already: waiting for it says why
            self.control.send(shared.seccomp)

    @property
    def idle(self) -> bool:
        """Whether it can take a program."""
        return self.index is None

    def wait_until_ready(self) -> None:
        """Raises SandboxUnavailable with what the start-up wrote."""
        try:
            ready = self.control.recv(64) == b"ready"
        except OSError:
            ready = False
        if not ready:
            self.process.kill()
            self.process.wait()
            self.errors.seek(0)
            words = self.errors.read().decode(errors="replace").strip().splitlines()
            raise SandboxUnavailable(f"the sandbox does not start: {words[-1] if words else 'no reason given'}")

    def begin(self, index: int, program: Program) -> None:
        """Hands over a program: its source and its tests as memory files, and a pipe for the judge's reason."""
        self.index, self.deadline = index, time.monotonic() + 25 * (program.seconds + 1) + LOST_SECONDS
        tests = json.dumps({"setup": program.setup, "tests": program.tests, "entry_point": program.entry_point})
        limits = json.dumps({"seconds": program.seconds, "memory_mb": program.memory_mb})
        with _memory_file(program.source.encode()) as source, _memory_file(tests.encode()) as judged:
            files = [source.fileno(), judged.fileno(), self.reason_in]
            try:
                socket.send_fds(self.control, [limits.encode()], files)
            except OSError:
                self.alive = False

    def finish(self) -> tuple[int, Score]:
        """The program's index and score, once the control socket is readable or the deadline has passed."""
        index, self.index = self.index, None
        assert index is not None
        self.control.settimeout(0.001)
        try:
            outcome = json.loads(self.control.recv(1 << 16))
        except (OSError, ValueError):
            self.alive = False
            return index, _score("grader_failed", "the sandbox's worker died", 0.0)
        verdict, _, failure = outcome["verdict"].partition(" ")
        reason = self._reason()  # read in any case: the next program's must not follow it
        return index, _score(verdict, outcome["detail"] or failure or reason, outcome["seconds"])

    def _reason(self) -> str:
        try:
            return os.read(self.reason, 1 << 12).decode(errors="replace")
        except BlockingIOError:  # the judge ended before it wrote one
            return ""

    def close(self) -> None:
        """Ends the warden: it dies, and all within, when its control socket closes."""
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in _children(self.process.pid):  # the first process inside: all others die with it
                os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        self.errors.close()
        for descriptor in (self.reason, self.reason_in):
            os.close(descriptor)


def refusal(program: Program) -> Score | None:
    """The verdict on what is not worth running: an empty source, one that is no text, or a huge one."""
    if not program.tests:
        return _score("grader_failed", "there is no test", 0.0)
    if not program.source.strip():
        return _score("no_answer", "an empty program", 0.0)
    if "\0" in program.source:
        return _score("crashed", "the source has NUL bytes", 0.0)
    try:
        size = len(program.source.encode())
    except UnicodeEncodeError:
        return _score("crashed", "the source is not valid Unicode", 0.0)
    return _score("crashed", f"a source of {size} bytes", 0.0) if size > MAX_SOURCE_BYTES else None


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


def _command(control: int, ruleset: int, without: Collection[Layer]) -> list[str]:
    inside = "bubblewrap" not in without
    arguments = f"{control}, {ruleset}, {inside}, {'pid_namespace' not in without}, {'limits' not in without}"
    program = f"from rewards.jail.warden import main; main({arguments})"
    if not inside:
        return bubblewrap.interpreter(Path(__file__).parents[1], program)
    wrapper = bubblewrap.executable()
    if wrapper is None:
        raise SandboxUnavailable("bubblewrap is not installed; install it (apt install bubblewrap)")
    return bubblewrap.command(wrapper, program)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _memory_file(content: bytes) -> BinaryIO:
    file = os.fdopen(os.memfd_create("program"), "r+b")
    file.write(content)
    file.flush()
    return file


def _score(verdict: str, detail: str, seconds: float) -> Score:
    correct = float(verdict == "correct")
    reward = None if verdict == "grader_failed" else correct
    return Score(reward, verdict, detail, {"correct": correct}, seconds)  # pyright: ignore
