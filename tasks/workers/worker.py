"""The child processes that hold the engine and the trainer, and how they are called, restarted and closed.

`Worker` is a thin layer over the standard library's process pool. `Cluster` (`cluster.py`) spans several machines.
"""

import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import ParamSpec, TypeVar

from conf.storage.home import NightError
from tasks.workers.heartbeat import FIRST_LIMIT, QUIET, Heartbeat, descendants, next_limit

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
PR_SET_PDEATHSIG = 1
KILL_LIMIT = 30.0  # seconds to wait for the kernel to end a killed process
_SPAWNING = Lock()
_stage: ContextVar[str] = ContextVar("stage", default="")
_LIBC = ctypes.CDLL(None, use_errno=True)  # opened here, because opening it between fork and exec could deadlock


class WorkerDiedError(NightError):
    """A child process ended before it answered (killed, out of memory, crashed or stuck). A new one starts next."""


class HoursOverError(NightError):
    """The work no longer fits into the night's hours."""


class WorkerEndedError(Exception):
    """A call failed because `Worker.end` had stopped its worker for good: the night is over."""


class Worker:
    """A child process that starts on first use, answers all calls in order, and is killed when its parent ends.

    The kernel kills a child when the *thread* that started it ends (PR_SET_PDEATHSIG), so this object keeps a thread
    that starts all children. A child's output goes to the file `log`. If a child dies or hangs, `on_loss` is called
    with a message. A child is killed if it uses no CPU time for `quiet` seconds, or if a call takes more than `limit`
    seconds or far exceeds the longest earlier call of its kind. After `until` (seconds since the epoch), calls raise
    HoursOverError.
    """

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        on_loss: Callable[[str], None] = lambda _: None,
        quiet: float = QUIET,
        limit: float = FIRST_LIMIT,
    ) -> None:
        self.name = name
        self.log = log
        self.environment = dict(environment or {})
        self.on_loss = on_loss
        self.quiet, self.limit = quiet, limit
        self.until = math.inf
        self._longest: dict[str, float] = {}  # seconds, by kind of call
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-keeper")
        self._pool: ProcessPoolExecutor | None = None
        self._sending = Lock()
        self._ended = self._paused = False

    @property
    def running(self) -> bool:
        """Whether a child process was started and has been neither closed nor found dead."""
        return self._pool is not None

    @property
    def lost(self) -> bool:
        """Whether the child process died while it had no call to answer. The next call would start an empty one."""
        pool = self._pool  # another thread may end it
        return pool is not None and bool(pool._broken)

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Send a call and return its future. `function` is imported by name; arguments and result are pickled."""
        with self._sending:
            self._refuse_if_ended()
            if self._pool is not None:
                with suppress(BrokenProcessPool):
                    return self._pool.submit(function, *args, **kwargs)
            self._pool, future = self._keeper.submit(self._start, function, *args, **kwargs).result()
            return future

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Send a call, wait for it, and return its result.

        Raises what the function raises, WorkerDiedError if the child dies or hangs, HoursOverError after `until`, and
        WorkerEndedError once `end` was called.
        """
        kind = " · ".join(dict.fromkeys(name for name in (_stage.get(), function.__name__) if name))
        if time.time() >= self.until:
            raise HoursOverError(f"time ran out before {kind} began")
        return self.result(self.submit(function, *args, **kwargs), kind)

    def spread(self, job: Callable[["Worker", A], R], items: Sequence[A]) -> list[R]:
        """Run a job on each item, and return the results in order. A `Cluster` shares the items among its machines.

        The result of a job must not depend on earlier items, or on which worker runs the job.
        """
        return [job(self, item) for item in items]

    def result(self, future: Future[R], kind: str = "") -> R:
        """Wait for a submitted call and return its result. Raises as `call` does. `kind` determines the time limit."""
        try:
            seconds = self._await(future, kind)
            answer = future.result()
            self._longest[kind] = max(seconds, self._longest.get(kind, 0.0))
            return answer
        except (BrokenProcessPool, CancelledError) as broken:
            self._pool = None
            self._refuse_if_ended()
            raise self._lost("died (killed, out of memory, or crashed)", kind) from broken

    def _await(self, future: Future[R], kind: str) -> float:
        """Wait for a result, and return the seconds waited. Kill the child if it is stuck or if `until` has passed."""
        if not (processes := self._processes):  # closed meanwhile: the result has arrived or never will
            return 0.0
        heartbeat = Heartbeat(processes[0], self.quiet, min(self.limit, next_limit(self._longest.get(kind))))
        while not future.done():  # `wait` does not count a future that was cancelled before it began
            if wait([future], heartbeat.poll).done:
                break
            if time.time() >= self.until:
                self.close(grace=0)
                raise HoursOverError(f"time ran out before {kind} was done")
            if not self._paused and (complaint := heartbeat.complaint()):
                self.close(grace=0)
                self._refuse_if_ended()
                raise self._lost(f"{complaint}; it was ended", kind)
        return heartbeat.seconds

    def _lost(self, how: str, kind: str) -> WorkerDiedError:
        """Report to `on_loss` how the child was lost, and return the error to raise."""
        at = f" at {kind}" if kind else ""
        self.on_loss(f"the {self.name} process {how}{at}")
        return WorkerDiedError(f"the {self.name} process {how}{at}{f'; its log: {self.log}' if self.log else ''}")

    def pause(self, paused: bool = True) -> None:
        """Stop the child in the middle of its work (SIGSTOP), or let it go on (SIGCONT)."""
        self._paused = paused and self.running  # a paused child is not stuck
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP if paused else signal.SIGCONT)

    @property
    def _processes(self) -> list[int]:
        return list((self._pool._processes or {}) if self._pool else {})

    def close(self, grace: float = 5.0) -> None:
        """Stop the child process, which releases its memory. A later call starts a new one.

        A child that has not finished its call after `grace` seconds is killed.
        """
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        children = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        limit = time.monotonic() + grace
        for child in children:
            child.join(max(0.0, limit - time.monotonic()))
            started = descendants(child.pid or 0)  # such as the programs that a user's grader runs
            child.kill()
            child.join(KILL_LIMIT)
            for process in started:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def end(self, grace: float = 5.0) -> None:
        """Stop the child process for good. Pending and later calls raise WorkerEndedError."""
        self._ended = True
        self.close(grace)

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise WorkerEndedError(f"the {self.name} process was ended")

    def _start(
        self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[ProcessPoolExecutor, Future[R]]:
        """Start a child process with its first call. This method runs on the thread that starts all children."""
        pool = ProcessPoolExecutor(1, get_context("spawn"), _begin, (os.getpid(), self.log))
        with _inherited(self.environment):
            return pool, pool.submit(function, *args, **kwargs)


def call_once(name: str, limit: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a new child process, which is killed if it takes more than `limit` seconds.

    Raises what the function raises, and WorkerDiedError if the child dies or is killed.
    """
    worker = Worker(name, quiet=limit, limit=limit)
    try:
        return worker.call(function, *args, **kwargs)
    finally:
        worker.end(grace=0)


@contextmanager
def working_on(stage: str) -> Iterator[None]:
    """Assign all calls in a `with` statement to a stage. A call's time limit depends on its stage's earlier calls."""
    token = _stage.set(stage)
    try:
        yield
    finally:
        _stage.reset(token)


@contextmanager
def _inherited(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while one child is spawned, so that the child alone inherits them.

    A pool's initializer would set them too late: the loader reads LD_PRELOAD before the child's first instruction.
    """
    with _SPAWNING:
        before = {name: os.environ[name] for name in variables if name in os.environ}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)


def _begin(parent: int, log: Path | None) -> None:
    """Set up a new child: it dies with its parent, ignores Ctrl-C, and writes its output to the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    if log is not None:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        log.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(target, stream.fileno())


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that started it ends. If the parent has ended, exit at once.

    `how`: the signal; SIGTERM for a process that must first stop its own children.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, how)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
