"""The host side of a sandbox worker: starts a warden in bubblewrap and hands it one program at a time."""

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rewards.programs import bubblewrap
from rewards.programs.policy import Layer, SandboxUnavailable
from rewards.verifier import Score

START_SECONDS = 30.0  # limit for a worker to become ready
LOST_SECONDS = 60.0  # a worker this long past its program's limits counts as stuck


@dataclass(frozen=True)
class Program:
    """An untrusted program's source, and the asserts that it must pass.

    `setup` runs before the tests, in the judge. `entry_point` is the function that the tests call. `seconds` limits CPU
    time and, separately, idle time. `memory_mb` limits address space on top of what Python itself takes.
    """

    source: str
    tests: tuple[str, ...]
    setup: str = ""
    entry_point: str | None = None
    seconds: float = 5.0
    memory_mb: int = 512


class SandboxWorker:
    """A warden process inside bubblewrap that judges one program at a time.

    `seccomp`: the compiled filter, or `none`. `ruleset`: the Landlock descriptor, or -1. `without`: the layers to omit.
    """

    def __init__(self, seccomp: bytes, ruleset: int, without: Collection[Layer]) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.index: int | None = None
        self.deadline = 0.0
        self.alive = True
        with theirs:
            self.process = subprocess.Popen(
                _command(theirs.fileno(), ruleset, without),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                pass_fds=[theirs.fileno(), *([ruleset] if ruleset >= 0 else [])],
                env=bubblewrap.ENVIRONMENT,
            )
        self.reason, self.reason_in = os.pipe()
        os.set_blocking(self.reason, False)
        self.control.settimeout(START_SECONDS)
        with contextlib.suppress(OSError):  # if the warden has ended, wait_until_ready reports why
            self.control.send(seccomp)

    @property
    def idle(self) -> bool:
        """Whether the worker is free to take a program."""
        return self.index is None

    def wait_until_ready(self) -> None:
        """Wait until the warden is ready. Raises SandboxUnavailable with stderr's last line if it does not start."""
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
        """Send a program to the warden: its source and tests as memory files, and a pipe for the judge's reason."""
        self.index, self.deadline = index, time.monotonic() + 25 * (program.seconds + 1) + LOST_SECONDS
        job = {"setup": program.setup, "tests": program.tests, "entry_point": program.entry_point}
        # This seed makes a test's random inputs reproducible, yet no program can predict them.
        seed = hashlib.sha256(json.dumps([program.source, job]).encode()).hexdigest()
        tests = json.dumps(job | {"seed": seed})
        limits = json.dumps({"seconds": program.seconds, "memory_mb": program.memory_mb})
        with _memory_file(program.source.encode()) as source, _memory_file(tests.encode()) as judged:
            files = [source.fileno(), judged.fileno(), self.reason_in]
            try:
                socket.send_fds(self.control, [limits.encode()], files)
            except OSError:
                self.alive = False

    def finish(self) -> tuple[int, Score]:
        """Return the program's index and score. Call it when the control socket is readable or the deadline is past."""
        index, self.index = self.index, None
        assert index is not None
        self.control.settimeout(0.001)
        try:
            outcome = json.loads(self.control.recv(1 << 16))
        except (OSError, ValueError):
            self.alive = False
            return index, scored("grader_failed", "the sandbox's worker died", 0.0)
        verdict, _, failure = outcome["verdict"].partition(" ")
        reason = self._reason()  # always read, so that it is not taken for the next program's
        return index, scored(verdict, outcome["detail"] or failure or reason, outcome["seconds"])

    def _reason(self) -> str:
        try:
            return os.read(self.reason, 1 << 12).decode(errors="replace")
        except BlockingIOError:  # the judge ended before it wrote a reason
            return ""

    def close(self) -> None:
        """Kill the sandbox. Every process inside it dies with its parent."""
        self.process.kill()
        self.process.wait()
        self.control.close()
        self.errors.close()
        for descriptor in (self.reason, self.reason_in):
            os.close(descriptor)


def _command(control: int, ruleset: int, without: Collection[Layer]) -> list[str]:
    inside = "bubblewrap" not in without
    arguments = f"{control}, {ruleset}, {inside}, {'pid_namespace' not in without}, {'limits' not in without}"
    program = f"from rewards.programs.warden import main; main({arguments})"
    if not inside:
        return bubblewrap.interpreter(Path(__file__).parents[2], program)
    wrapper = shutil.which("bwrap")
    if wrapper is None:
        raise SandboxUnavailable("bubblewrap is not installed; install it (apt install bubblewrap)")
    return bubblewrap.command(wrapper, program)


def _memory_file(content: bytes) -> BinaryIO:
    file = os.fdopen(os.memfd_create("program"), "r+b")
    file.write(content)
    file.flush()
    return file


def scored(verdict: str, detail: str, seconds: float) -> Score:
    """Return a program's score. `detail`, which may quote the program, is reduced to one line of printable text."""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(detail.split()))
    return Score.of(verdict, line, seconds)  # pyrefly: ignore[bad-argument-type]
