"""The child processes that hold the engine and the trainer: call, restart, close.

One small seam on the standard library's process pool; a cluster's actors stand behind it too (`cluster.py`).
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

POLL = 5.0  # seconds between two checks
QUIET = 600.0  # seconds: a child that uses less than a second of processor time in them is stuck
ALIVE = 1.0 / 600  # share of them, in processor time; the idle threads of a stuck child use less
FIRST_LIMIT = 12 * 3600.0  # seconds of a call that has no history
LEAST_LIMIT, TIMES = 1800.0, 10  # of any other: so many times its longest so far, and never less than half an hour
TICKS = os.sysconf("SC_CLK_TCK")


class Heartbeat:
    """Watches one call in a child process.

    Only time in which it is asked counts: where the night itself was stopped (Ctrl-Z, a suspended machine), no child is
    stuck. `quiet`, `limit`: seconds.
    """

    def __init__(self, process: int, quiet: float = QUIET, limit: float = FIRST_LIMIT) -> None:
        self.process, self.quiet, self.limit = process, quiet, limit
        self.poll = min(POLL, quiet / 4)
        self.seconds = self.still = 0.0  # of the call so far, and since the last sign of life
        self.used = processor_seconds(process)

    def complaint(self) -> str | None:
        """Return what is wrong with the child, `poll` seconds after the last call; None while it works."""
        self.seconds += self.poll
        self.still += self.poll
        used = processor_seconds(self.process)
        if abs(used - self.used) >= ALIVE * self.quiet:
            self.used, self.still = used, 0.0
        if self.still >= self.quiet:
            return f"was stuck: no processor time used for {self.still:.0f} s"
        if self.seconds >= self.limit:
            return f"was stuck: not finished after {self.seconds:.0f} s"
        return None


def next_limit(longest: float | None) -> float:
    """Return how many seconds a call may take, given those of the longest call of its kind (None: it is the first)."""
    return FIRST_LIMIT if longest is None else max(LEAST_LIMIT, TIMES * longest)


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and its descendants in seconds; 0 of one that is gone."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [child for file in folder.glob("task/*/children") for child in file.read_text().split()]
    except OSError:
        return 0.0
    used = sum(map(int, fields[11:15])) / TICKS  # user and system, of itself and of children it has waited for
    return used + sum(processor_seconds(int(child)) for child in children)


P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
PR_SET_PDEATHSIG = 1
KILL_LIMIT = 30.0  # seconds; a process that the kernel cannot end is left to it
_SPAWNING = Lock()
_stage: ContextVar[str] = ContextVar("stage", default="")
_LIBC = ctypes.CDLL(None, use_errno=True)  # opened here: between fork and exec that could deadlock


class WorkerDiedError(NightError):
    """A child process ended without an answer: killed, out of memory, or crashed. The next call starts a new one."""


class WorkerHungError(WorkerDiedError):
    """A child process was ended because it did nothing any more or took far too long."""


class HoursOverError(NightError):
    """The work does not fit into the night's hours any more."""


class WorkerEndedError(Exception):
    """A call to a worker that was ended for good: the night is over."""


class Worker:
    """One child process, started on first use, kept for all calls, killed with its parent.

    Calls are answered in order. PR_SET_PDEATHSIG follows the *thread* that made the child, so children are made on a
    thread of this object. A child's output goes into the file `log`; `on_loss` is called with a sentence where it dies
    or hangs. A child that uses no processor time for `quiet` seconds is ended, and so is one whose call takes many
    times as long as any of its kind before and as its stage takes usually (`usual`: seconds by the stage's name). After
    `until` (seconds since the epoch) no call is waited for.
    """

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        on_loss: Callable[[str], None] = lambda _: None,
        quiet: float = QUIET,
        usual: Mapping[str, float] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self.environment = dict(environment or {})
        self.on_loss = on_loss
        self.quiet = quiet
        self.usual = dict(usual or {})
        self.until = math.inf
        self._longest: dict[str, float] = {}  # seconds, by kind of call
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-keeper")
        self._pool: ProcessPoolExecutor | None = None
        self._sending = Lock()
        self._ended = False

    @property
    def running(self) -> bool:
        """Whether there is a child process, as far as is known."""
        return self._pool is not None

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Send a call; `function` must be importable by name, arguments and result picklable."""
        with self._sending:
            self._refuse_if_ended()
            if self._pool is not None:
                with suppress(BrokenProcessPool):
                    return self._pool.submit(function, *args, **kwargs)
            self._pool, future = self._keeper.submit(self._start, function, *args, **kwargs).result()
            return future

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Send a call and wait for its answer.

        Raises what the function raises, WorkerDiedError where the child dies, WorkerHungError where it hangs,
        HoursOverError after `until`, WorkerEndedError where the worker was ended.
        """
        kind = " · ".join(dict.fromkeys(name for name in (_stage.get(), function.__name__) if name))
        if time.time() >= self.until:
            raise HoursOverError(f"the night's hours were over before {kind} began")
        return self.result(self.submit(function, *args, **kwargs), kind)

    def spread(self, job: Callable[["Worker", A], R], items: Sequence[A]) -> list[R]:
        """Return what a job makes of each item with this worker, in order. An engine on several machines shares them.

        A job may not depend on the items before it, nor on which worker does it.
        """
        return [job(self, item) for item in items]

    def result(self, future: Future[R], kind: str = "") -> R:
        """Return the answer to `submit`, with the errors of `call`. `kind`: of the calls to compare its time with."""
        try:
            seconds = self._await(future, kind)
            answer = future.result()
            self._longest[kind] = max(seconds, self._longest.get(kind, 0.0))
            return answer
        except (BrokenProcessPool, CancelledError) as broken:
            self._pool = None
            self._refuse_if_ended()
            raise self._lost("died (killed, out of memory, or crashed)", kind, WorkerDiedError) from broken

    def _await(self, future: Future[R], kind: str) -> float:
        """Wait as long as an answer can be expected, then kill the child. Returns the seconds."""
        processes = list((self._pool._processes or {}) if self._pool else {})
        if not processes:  # closed meanwhile: the answer is there or never comes
            return 0.0
        known = (self._longest.get(kind), self.usual.get(kind.split(" · ")[0]))
        longest = max((seconds for seconds in known if seconds is not None), default=None)
        heartbeat = Heartbeat(processes[0], self.quiet, next_limit(longest))
        while not future.done():  # `wait` does not count one that was cancelled before it began
            if wait([future], heartbeat.poll).done:
                break
            if time.time() >= self.until:
                self.close(grace=0)
                raise HoursOverError(f"the night's hours were over before {kind} was done")
            if complaint := heartbeat.complaint():
                self.close(grace=0)
                self._refuse_if_ended()
                raise self._lost(f"{complaint}; it was ended", kind, WorkerHungError)
        return heartbeat.seconds

    def _lost(self, how: str, kind: str, error: type[WorkerDiedError]) -> WorkerDiedError:
        """Return the error that says how the child was lost, and report it to `on_loss`."""
        at = f" at {kind}" if kind else ""
        self.on_loss(f"the {self.name} process {how}{at}")
        return error(f"the {self.name} process {how}{at}{f'; its log: {self.log}' if self.log else ''}")

    def close(self, grace: float = 5.0) -> None:
        """End the child and release its memory; a later call starts a new one.

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
            child.kill()
            child.join(KILL_LIMIT)

    def end(self, grace: float = 5.0) -> None:
        """Close for good: calls that wait for an answer, and later ones, raise WorkerEndedError."""
        self._ended = True
        self.close(grace)

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise WorkerEndedError(f"the {self.name} process was ended")

    def _start(
        self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[ProcessPoolExecutor, Future[R]]:
        """Start a child with its first call; on the keeper's thread."""
        pool = ProcessPoolExecutor(1, get_context("spawn"), _begin, (os.getpid(), self.log))
        with _inherited(self.environment):
            return pool, pool.submit(function, *args, **kwargs)


def call_once(name: str, limit: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a new child process, which is ended after `limit` seconds.

    Raises what the function raises, and WorkerDiedError where the child dies or is ended.
    """
    worker = Worker(name, quiet=limit)
    worker.until = time.time() + limit
    try:
        return worker.call(function, *args, **kwargs)
    except HoursOverError as error:
        raise WorkerHungError(f"the {name} process had not finished after {limit:g} s and was ended") from error
    finally:
        worker.end(grace=0)


@contextmanager
def working_on(stage: str) -> Iterator[None]:
    """Name the stage that calls within belong to: the time of calls is limited by earlier ones of the same stage."""
    token = _stage.set(stage)
    try:
        yield
    finally:
        _stage.reset(token)


@contextmanager
def _inherited(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while a child is spawned, which inherits them; one child at a time.

    A pool's initializer would come too late: the loader reads LD_PRELOAD before the child's first instruction.
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
    """In the child: die with the parent, leave Ctrl-C to it, and write the output into the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(target, stream.fileno())


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when the thread that made it ends; end at once if it has ended already.

    `how`: SIGTERM suits a process that has children to end.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, how)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
