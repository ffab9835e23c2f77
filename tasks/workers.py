"""The child processes that hold the engine and the trainer: call, restart, close.

One small seam on the standard library's process pool, so that a cluster's actors can stand behind it later.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
PR_SET_PDEATHSIG = 1
_SPAWNING = Lock()
_LIBC = ctypes.CDLL(None, use_errno=True)  # opened here: between fork and exec that could wait for ever for a lock


class WorkerDiedError(Exception):
    """A child process ended without an answer: killed, out of memory, or crashed. The next call starts a new one."""


class WorkerEndedError(Exception):
    """A call to a child that was ended for good: the night is over, and nothing is started any more."""


class Worker:
    """One child process, started on first use, kept for all calls, gone with its parent.

    Calls are answered one after the other, in order. PR_SET_PDEATHSIG follows the *thread* that made the child, so
    all children are made on a thread of this object's own, which lives until `close`. What a child prints goes into
    the file `log`.
    """

    def __init__(self, name: str, environment: Mapping[str, str] | None = None, log: Path | None = None) -> None:
        self.name = name
        self.log = log
        self.environment = dict(environment or {})
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

        Raises what the function raises, WorkerDiedError where the child dies, WorkerEndedError where it was ended.
        """
        return self.result(self.submit(function, *args, **kwargs))

    def result(self, future: Future[R]) -> R:
        """The answer to `submit`, with the errors of `call`."""
        try:
            return future.result()
        except (BrokenProcessPool, CancelledError) as broken:
            self._pool = None
            self._refuse_if_ended()
            raise WorkerDiedError(f"the {self.name} process died (killed, out of memory, or crashed)") from broken

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
            child.join()

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


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when the thread that made it ends; ends at once if it has already."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
