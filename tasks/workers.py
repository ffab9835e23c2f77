"""The child processes that hold the engine and the trainer: call, restart, close.

One small seam on the standard library's process pool, so that a cluster's actors can stand behind it later.
"""

import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import ParamSpec, TypeVar

from conf.storage.home import NightError

POLL = 5.0  # seconds between two looks
QUIET = 600.0  # seconds: who uses less than a second of processor time in them is stuck, wherever that may be
ALIVE = 1.0 / 600  # share of them, in processor time; the idle threads of a stuck child use less
FIRST_LIMIT = 12 * 3600.0  # seconds of a call that has no history
LEAST_LIMIT, TIMES = 1800.0, 10  # of any other: so many times its longest so far, and never less than half an hour
TICKS = os.sysconf("SC_CLK_TCK")


class Heartbeat:
    """Looks at one call in a child process now and then.

    Only time in which it looks on is counted: where the night itself was stopped (Ctrl-Z, a machine asleep), no child
    is to blame for that. `quiet`, `limit`: seconds.
    """

    def __init__(self, process: int, quiet: float = QUIET, limit: float = FIRST_LIMIT) -> None:
        self.process, self.quiet, self.limit = process, quiet, limit
        self.poll = min(POLL, quiet / 4)
        self.seconds = self.still = 0.0  # of the call so far, and since the last sign of life
        self.used = processor_seconds(process)

    def complaint(self) -> str | None:
        """What is wrong with the child, `poll` seconds after the last look; None while it works."""
        self.seconds += self.poll
        self.still += self.poll
        used = processor_seconds(self.process)
        if abs(used - self.used) >= ALIVE * self.quiet:
            self.used, self.still = used, 0.0
        if self.still >= self.quiet:
            return f"was stuck: no processor time used for {self.still:.0f} s"
        if self.seconds >= self.limit:
            return f"was stuck: not through after {self.seconds:.0f} s"
        return None


def next_limit(longest: float | None) -> float:
    """How long a call may take, seconds, when the longest of its kind so far took `longest` (None: it is the first)."""
    return FIRST_LIMIT if longest is None else max(LEAST_LIMIT, TIMES * longest)


def processor_seconds(process: int) -> float:
    """Processor time that a process and its descendants have used so far, seconds; 0 of one that is gone."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [child for file in folder.glob("task/*/children") for child in file.read_text().split()]
    except OSError:
        return 0.0
    own = sum(map(int, fields[11:15])) / TICKS  # user and system, its own and that of children it has waited for
    return own + sum(processor_seconds(int(child)) for child in children)


P = ParamSpec("P")
R = TypeVar("R")
PR_SET_PDEATHSIG = 1
KILL_LIMIT = 30.0  # seconds; a process that the kernel cannot end is left to it
_SPAWNING = Lock()
_stage: ContextVar[str] = ContextVar("stage", default="")
_LIBC = ctypes.CDLL(None, use_errno=True)  # opened here: between fork and exec that could wait for ever for a lock


class WorkerDiedError(NightError):
    """A child process ended without an answer: killed, out of memory, or crashed. The next call starts a new one."""


class WorkerHungError(WorkerDiedError):
    """A child process that did nothing any more, or took far too long, and was ended for it."""


class HoursOverError(NightError):
    """What is not done yet does not fit into the night's hours any more."""


class WorkerEndedError(Exception):
    """A call to a child that was ended for good: the night is over, and nothing is started any more."""


class Worker:
    """One child process, started on first use, kept for all calls, gone with its parent.

    Calls are answered one after the other, in order. PR_SET_PDEATHSIG follows the *thread* that made the child, so
    all children are made on a thread of this object's own, which lives until `close`. What a child prints goes into
    the file `log`; that it died or hung is told to `on_loss`. A child that uses no processor time for `quiet` seconds
    is ended, and so is one whose call takes many times as long as any of its kind before and as its stage `usual`ly
    takes (seconds, by the stage's name). Later than `until` (seconds since the epoch) no call is waited for.
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
        self._ended = False

    @property
    def running(self) -> bool:
        """Whether there is a child, as far as is known."""
        return self._pool is not None

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Sends a call; `function` must be importable by name, arguments and result picklable."""
        return self._keeper.submit(self._send, function, *args, **kwargs).result()

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Sends a call and waits.

        Raises what the function raises, WorkerDiedError where the child dies, WorkerHungError where it hangs,
        HoursOverError where `until` is past, WorkerEndedError where it was ended.
        """
        kind = " · ".join(dict.fromkeys(name for name in (_stage.get(), function.__name__) if name))
        if time.time() >= self.until:
            raise HoursOverError(f"the night's hours were over before {kind} began")
        return self.result(self.submit(function, *args, **kwargs), kind)

    def result(self, future: Future[R], kind: str = "") -> R:
        """The answer to `submit`, with the errors of `call`. `kind`: of the calls that its time is compared with."""
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
        """Waits as long as an answer is to be expected; a child that gives none is killed. Returns the seconds."""
        processes = list((self._pool._processes or {}) if self._pool else {})
        if not processes:  # it was closed meanwhile, and the answer is there or never comes
            return 0.0
        known = (self._longest.get(kind), self.usual.get(kind.split(" · ")[0]))
        longest = max((seconds for seconds in known if seconds is not None), default=None)
        heartbeat = Heartbeat(processes[0], self.quiet, next_limit(longest))
        while not wait([future], heartbeat.poll).done:
            if time.time() >= self.until:
                self.close(grace=0)
                raise HoursOverError(f"the night's hours were over before {kind} was done")
            if complaint := heartbeat.complaint():
                self.close(grace=0)
                self._refuse_if_ended()
                raise self._lost(f"{complaint}; it was ended", kind, WorkerHungError)
        return heartbeat.seconds

    def _lost(self, how: str, kind: str, error: type[WorkerDiedError]) -> WorkerDiedError:
        """The error that says how the child was lost; whoever keeps the night's incidents hears of it too."""
        at = f" at {kind}" if kind else ""
        self.on_loss(f"the {self.name} process {how}{at}")
        return error(f"the {self.name} process {how}{at}{f'; its log: {self.log}' if self.log else ''}")

    def close(self, grace: float = 5.0) -> None:
        """Ends the child and gives back its memory; a later call starts a new one.

        A child that is not through with its call after `grace` seconds is killed.
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
        """`close`, for good: calls that wait for an answer, and later ones, raise WorkerEndedError."""
        self._ended = True
        self.close(grace)

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise WorkerEndedError(f"the {self.name} process was ended")

    def _send(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        self._refuse_if_ended()
        if self._pool is not None:
            try:
                return self._pool.submit(function, *args, **kwargs)
            except BrokenProcessPool:
                self._pool = None
        pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_start, initargs=(os.getpid(), self.log)
        )
        with _SPAWNING:  # spawn hands on the environment of this moment, and other workers may start meanwhile
            before = {key: os.environ.get(key) for key in self.environment}
            os.environ.update(self.environment)
            try:
                future = pool.submit(function, *args, **kwargs)
            finally:
                for key, value in before.items():
                    if value is None:
                        del os.environ[key]
                    else:
                        os.environ[key] = value
        self._pool = pool
        return future


def call_once(name: str, limit: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function in a child process of its own, which is ended after `limit` seconds.

    Raises what the function raises, and WorkerDiedError where the child dies or is ended.
    """
    worker = Worker(name, quiet=limit)
    worker.until = time.time() + limit
    try:
        return worker.call(function, *args, **kwargs)
    except HoursOverError as error:
        raise WorkerHungError(f"the {name} process was not through after {limit:g} s and was ended") from error
    finally:
        worker.end(grace=0)


@contextmanager
def working_on(stage: str) -> Iterator[None]:
    """What calls from within are for: each stage's calls have a history of their own, by which they are limited."""
    token = _stage.set(stage)
    try:
        yield
    finally:
        _stage.reset(token)


def _start(parent: int, log: Path | None) -> None:
    """In the child: dies with the parent, leaves Ctrl-C to it, and writes its output into the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(target, stream.fileno())


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Asks the kernel to send this process a signal when the thread that made it ends; ends at once if it has already.

    By default it is killed; one that has children of its own to end is better asked (SIGTERM).
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, how)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
