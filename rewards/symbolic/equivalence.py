"""Equality of two mathematical expressions by math-verify, in child processes that can be killed.

An expression can take math-verify hours and all memory. Its own time limit is an alarm that works in main threads only
and removes the caller's alarm. So it runs with its alarms off, one pair at a time, in workers (`equivalence_worker`)
that are forked from a process that has it imported.
"""

import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, get_args

Outcome = Literal["equal", "different", "timeout", "out_of_memory", "crashed"]
RETRIED = ("timeout", "out_of_memory", "crashed")
PAIRS_PER_WORKER = 2000  # then it is replaced, so that sympy's memory does not grow all night
ENVIRONMENT = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH")  # passed on; no keys, no LD_PRELOAD
START_SECONDS = 120.0
END_SECONDS = 5.0  # then the server is killed
ORDER_SECONDS = 30.0  # forking or ending a worker takes milliseconds; a server that needs longer is stuck


class MathWorkersError(Exception):
    """The workers could not be started or have died: a failure of the grader, never of an answer."""


@dataclass(eq=False)
class _Worker:
    pid: int
    channel: socket.socket
    pairs: int = 0


class MathEquality:
    """A context manager; its processes start with the first comparison and end on exit.

    `workers` is their number (None: one per processor), `seconds` the wall time of a pair, `memory_mb` the address
    space of a worker. It may be used from any thread, by one at a time.
    """

    def __init__(self, workers: int | None = None, seconds: float = 10.0, memory_mb: int = 2048) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.seconds, self.memory_mb = seconds, memory_mb
        self._server: subprocess.Popen[bytes] | None = None
        self._idle: list[_Worker] = []

    def __enter__(self) -> "MathEquality":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Outcome]:
        """Return an outcome for each (prediction, truth), in the same order; identical pairs are compared once.

        A pair that took too long, too much memory or its worker's life gets a second try, alone. Raises
        MathWorkersError if the workers cannot be started or die.
        """
        distinct = list(dict.fromkeys(pairs))
        try:
            if distinct and self._server is None:
                self._start()
            outcomes = dict(zip(distinct, self._run(distinct, self.workers), strict=True))
            for pair in [pair for pair, outcome in outcomes.items() if outcome in RETRIED]:
                [outcomes[pair]] = self._run([pair], 1)
        except OSError as error:
            self.close()
            raise MathWorkersError(f"math-verify's processes are gone ({error})") from error
        return [outcomes[pair] for pair in pairs]

    def close(self) -> None:
        """End all processes; a later comparison starts new ones."""
        if self._server is None:
            return
        server, self._server, self._idle = self._server, None, []
        for key in list(self._selector.get_map().values()):
            key.data.channel.close()
        self._selector.close()
        self._control.close()  # the server ends its workers, then itself
        try:
            server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._selector = selectors.DefaultSelector()
        script = Path(__file__).with_name("equivalence_worker.py")
        with theirs, tempfile.TemporaryFile() as errors:
            self._server = subprocess.Popen(
                [sys.executable, "-P", str(script), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_environment(),
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            self._control.settimeout(START_SECONDS)
            try:
                ready = self._control.recv(64)
            except OSError:
                ready = b""
            self._control.settimeout(ORDER_SECONDS)
            if not ready:
                self.close()
                raise MathWorkersError(f"math-verify's process did not start: {_last_line(errors)}")

    def _run(self, pairs: Sequence[tuple[str, str]], workers: int) -> list[Outcome]:
        """Compare all pairs with at most `workers` at a time."""
        outcomes: list[Outcome] = ["crashed"] * len(pairs)
        waiting = deque(range(len(pairs)))
        busy: dict[_Worker, tuple[int, float]] = {}  # the index of its pair, and its deadline
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = self._idle.pop() if self._idle else self._fork()
                busy[worker] = waiting.popleft(), time.monotonic() + self.seconds
                _send(worker, pairs[busy[worker][0]])
            for worker, outcome in self._answers(busy).items():
                outcomes[busy.pop(worker)[0]] = outcome
        return outcomes

    def _answers(self, busy: Mapping[_Worker, tuple[int, float]]) -> dict[_Worker, Outcome]:
        """Wait until a worker answers, dies or is overdue."""
        until = min(deadline for _, deadline in busy.values())
        answers: dict[_Worker, Outcome] = {}
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            answers[key.data] = _received(key.data)
        now = time.monotonic()
        for worker, (_, deadline) in busy.items():
            if worker not in answers and deadline <= now:
                answers[worker] = "timeout"
        for worker, outcome in answers.items():
            worker.pairs += 1
            if worker in self._idle:
                self._idle.remove(worker)  # died while idle
            if outcome in RETRIED or worker.pairs >= PAIRS_PER_WORKER:
                self._end(worker)
            else:
                self._idle.append(worker)
        return {worker: outcome for worker, outcome in answers.items() if worker in busy}

    def _fork(self) -> _Worker:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._control, [f"fork {self.memory_mb * 2**20}".encode()], [theirs.fileno()])
        worker = _Worker(int(self._control.recv(64) or self._lost()), ours)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        self._control.send(f"end {worker.pid}".encode())
        if not self._control.recv(64):
            self._lost()

    def _lost(self) -> int:
        raise ConnectionError("their parent died")


def _send(worker: _Worker, pair: tuple[str, str]) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it died, which the next receive reports
        worker.channel.send(json.dumps(pair).encode())


def _received(worker: _Worker) -> Outcome:
    try:
        answer = worker.channel.recv(64).decode()
    except ConnectionResetError:
        answer = ""
    return next((outcome for outcome in get_args(Outcome) if outcome == answer), "crashed")


def _environment() -> dict[str, str]:
    """Return the processes' environment: a fixed hash seed, one thread, and no secrets."""
    fixed = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | fixed


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "no message")
