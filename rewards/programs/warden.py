"""The supervisor inside the sandbox: for each program, it forks a judge and a candidate, and finally kills both.

The warden never reads a program's source, a test or a judge's reason. A file descriptor passes each to or from the one
child that may see it, so that no program can find it in memory inherited from the warden. The warden decides only the
verdicts that need an observer: a timeout, or how a program died (out of memory, a forbidden system call, a crash).
"""

import fcntl
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rewards.programs import candidate, isolation, judge
from rewards.programs.wire import Channel

TICK_SECONDS = 0.02
JUDGE_SECONDS = 1.0  # the judge's CPU limit, unless the program's is higher: comparing its values takes time
JUDGE_MEMORY = 1 << 30  # bytes of address space on top of the warden's own
WALL_FACTOR = 20.0  # the wall-clock limit, a backstop on a busy machine, is this times (CPU limit + 1 s)
PATIENCE_SECONDS = (0.0, 0.001, 0.005, 0.02, 0.1, 0.5)
FIRST_FREE = 3  # the first descriptor after the standard three
REASON_BYTES = 300
NULL = "/dev/null"
PRELOADED = (
    "abc array base64 bisect calendar cmath collections collections.abc contextlib copy dataclasses datetime decimal "
    "enum fractions functools hashlib heapq inspect io itertools json keyword math numbers operator os pprint queue "
    "random re secrets statistics string struct sys textwrap threading time timeit traceback types typing unicodedata "
    "uuid zlib"
).split()


@dataclass(frozen=True)
class Isolation:
    """The isolation layers of this warden's children. A layer that is switched off is None or False."""

    seccomp: bytes | None
    landlock: int | None
    pid_namespaces: isolation.PidNamespaces | None
    limits: bool
    own_bytes: int  # the warden's own address space

    def fork(self) -> int:
        """Fork a child, in a new PID namespace if that layer is on."""
        return os.fork() if self.pid_namespaces is None else self.pid_namespaces.fork()


def main(control_descriptor: int, landlock: int, hidden_proc: bool, pid_namespaces: bool, limits: bool) -> NoReturn:
    """Judge programs from the control socket until it closes. The first message is the seccomp program, or `none`."""
    control = socket.socket(fileno=control_descriptor)
    for name in PRELOADED:
        importlib.import_module(name)
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    namespaces = isolation.PidNamespaces() if pid_namespaces else None
    own_pages = int(Path("/proc/self/statm").read_text().split()[0])
    if hidden_proc:
        isolation.hide_proc()
        isolation.protect_null()
    program = control.recv(1 << 16)
    seccomp = program if program != b"none" else None
    own = own_pages * os.sysconf("SC_PAGE_SIZE")
    layers = Isolation(seccomp, landlock if landlock >= 0 else None, namespaces, limits, own)
    gc.collect()
    gc.freeze()  # so that children share these pages
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
        if not message:
            os._exit(0)
        control.send(json.dumps(Trial(layers, control, proc, json.loads(message)).run(*descriptors)).encode("ascii"))


class Trial:
    """Runs one program and its tests in two processes, and watches them until there is a verdict."""

    def __init__(self, layers: Isolation, control: socket.socket, proc: int, job: dict[str, float]) -> None:
        self.layers, self.control, self.proc = layers, control, proc
        self.seconds, self.memory = float(job["seconds"]), int(job["memory_mb"]) << 20
        self.judge_seconds = max(JUDGE_SECONDS, self.seconds)

    def run(self, source: int, tests: int, reason: int) -> dict[str, Any]:
        """Run the trial and return {verdict, detail, seconds}. When it returns, both child processes have ended.

        `seconds` is the program's CPU time. `detail` is None if the judge wrote its reason into the pipe `reason`.
        """
        judge_end, candidate_end = socket.socketpair()
        verdict_out, verdict_in = os.pipe()
        theirs, ours = [candidate_end.fileno(), source], [judge_end.fileno(), tests, reason]
        candidate_pid = self._fork(_run_candidate, theirs, verdict_in, self.seconds, self.memory)
        judge_pid = self._fork(_run_judge, ours, verdict_in, self.judge_seconds, JUDGE_MEMORY)
        for end in (judge_end, candidate_end):
            end.close()
        for descriptor in (source, tests, reason, verdict_in):
            os.close(descriptor)
        with os.fdopen(verdict_out, "rb") as report:
            verdict, detail = self._watch(candidate_pid, judge_pid, verdict_out) or ("", None)
            verdict = verdict or report.read(REASON_BYTES).decode() or "grader_failed judge died"
        status, used = _end(candidate_pid, patient=verdict == "gone")
        _end(judge_pid)
        if verdict == "gone":
            verdict, detail = self._how_it_ended(status, used)
        return {"verdict": verdict, "detail": detail, "seconds": used}

    def _fork(self, run: Callable[..., None], own: list[int], report: int, seconds: float, memory: int) -> int:  # pyrefly: ignore[bad-return]
        """Fork a locked-down child that calls `run` with the descriptors `own` and `report` and has no others."""
        pid = self.layers.fork()
        if pid:
            return pid
        try:
            self._lock_down([*own, report], seconds, memory)
        except BaseException as error:  # nothing untrusted has run yet
            os.write(report, f"grader_failed isolation failed: {error}".encode())
            os._exit(1)
        try:
            run(*range(FIRST_FREE, FIRST_FREE + len(own) + 1))
        finally:
            os._exit(0)

    def _lock_down(self, descriptors: list[int], seconds: float, memory: int) -> None:
        """Renumber `descriptors` to 3, 4, …, with the report's last, close all others, and apply every layer."""
        null = os.open(NULL, os.O_RDWR)
        beyond = FIRST_FREE + len(descriptors)  # above the new numbers, which may still be in use, e.g. by the ruleset
        kept = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, beyond) for descriptor in descriptors]
        isolation.drop_privileges()
        if self.layers.landlock is not None:
            isolation.restrict_files(self.layers.landlock)
        if self.layers.limits:
            isolation.limit(seconds, self.layers.own_bytes + memory)
        for standard in range(FIRST_FREE):
            os.dup2(null, standard)
        for index, descriptor in enumerate(kept):
            os.dup2(descriptor, FIRST_FREE + index)
        os.closerange(FIRST_FREE + len(kept), 1 << 20)
        if self.layers.seccomp is not None:
            isolation.filter_system_calls(self.layers.seccomp)

    def _watch(self, candidate_pid: int, judge_pid: int, verdict_out: int) -> tuple[str, str] | None:
        """Wait for the judge's verdict and return None. If a limit is exceeded first, return verdict and detail."""
        poll = select.poll()
        poll.register(verdict_out, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        began = looked = time.monotonic()
        idle = before = 0.0
        while True:
            ready = poll.poll(TICK_SECONDS * 1000)
            if any(descriptor == verdict_out for descriptor, _ in ready):
                return None
            if ready:  # nothing is sent while a program runs, so the night's process has ended
                os._exit(0)
            candidate_cpu, judge_cpu = _cpu_seconds(candidate_pid), _cpu_seconds(judge_pid)
            if candidate_cpu > self.seconds:
                return "timeout", f"more than {self.seconds:g} s of CPU time"
            if judge_cpu > self.judge_seconds:
                return "timeout", "the values returned take too long to compare"
            now, used = time.monotonic(), candidate_cpu + judge_cpu
            if not (self._runnable(candidate_pid) or self._runnable(judge_pid)):
                idle += max(0.0, now - looked - (used - before))
            looked, before = now, used
            if idle > self.seconds:
                return "timeout", f"idle for {self.seconds:g} s"
            if now - began > WALL_FACTOR * (self.seconds + 1):
                return "timeout", f"more than {WALL_FACTOR * (self.seconds + 1):g} s by the clock"

    def _runnable(self, pid: int) -> bool:
        """Return whether any thread of the process is running or waiting for a core on a busy machine."""
        try:
            tasks = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
        except OSError:
            return False
        try:
            return any(_state(tasks, thread) == b"R" for thread in os.listdir(tasks))
        finally:
            os.close(tasks)

    def _how_it_ended(self, status: int, used: float) -> tuple[str, str | None]:
        """Return the verdict on a program whose process ended before the judge finished."""
        fatal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if fatal == signal.SIGSYS:
            return "forbidden", "a system call that is not allowed"
        if fatal == signal.SIGXCPU or used > self.seconds:
            return "timeout", f"more than {self.seconds:g} s of CPU time"
        if fatal == signal.SIGKILL:
            return "out_of_memory", "killed by the kernel"
        return "crashed", f"ended by signal {fatal}" if fatal else None


def _run_candidate(channel: int, source: int, report: int) -> None:
    os.close(report)  # the program must not be able to write a verdict
    random.seed(0)
    candidate.serve(Channel(channel), _read_file(source))


def _run_judge(channel: int, tests: int, reason: int, report: int) -> None:
    job = json.loads(_read_file(tests))
    random.seed(job["seed"])
    verdict, why = judge.judge(Channel(channel), job["setup"], job["tests"], job["entry_point"])
    os.write(reason, why.encode("utf-8", "backslashreplace")[:REASON_BYTES])
    os.write(report, verdict.encode("ascii"))


def _read_file(descriptor: int) -> bytes:
    """Return a memory file's content. The file is closed, so that untrusted code cannot reach it."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


def _state(tasks: int, thread: str) -> bytes:
    """Return a thread's state letter (see proc(5)), or empty bytes if the thread has ended."""
    try:
        descriptor = os.open(f"{thread}/stat", os.O_RDONLY, dir_fd=tasks)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096).rpartition(b")")[2].split()[0]
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process's threads have used, or 0 if it has ended (see clock_getcpuclockid(3))."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _end(pid: int, patient: bool = False) -> tuple[int, float]:
    """Kill a child, and return its wait status and CPU seconds.

    If `patient`, first give the child 0.6 s to end by itself. The status then shows how it ended.
    """
    for pause in PATIENCE_SECONDS if patient else ():
        time.sleep(pause)
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage.ru_utime + usage.ru_stime
    os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    if patient:
        status = 0  # the SIGKILL was ours: the child had only closed its channel
    return status, usage.ru_utime + usage.ru_stime
