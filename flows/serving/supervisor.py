"""Serves the model version that has the alias `daytime`, except while a night runs."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

from conf.schema import NightConfig
from conf.storage.home import Home, InputError, inside
from conf.storage.locks import running_night, take_server_lock
from flows.serving.vllm_server import EngineServer, delete_other_merged, whole_model
from flows.web.health import open_registry
from models.hf.checkpoint import is_intact
from tasks.registry.mlflow_registry import DAYTIME, Registry, Version

if TYPE_CHECKING:
    from flows.serving.proxy import Gate
    from flows.teaching.classroom import Classroom
    from flows.teaching.engine import Engine

E = TypeVar("E", EngineServer, "Engine")
POLL = 2.0  # seconds between two checks of the registry and the night's lock
DRAIN_LIMIT = 30.0  # seconds that the engine gets to finish its answers before it is stopped
LOADING, NIGHT_LONG = 10, 60  # seconds after which clients should retry: while an engine loads, and during a night


say = partial(print, flush=True)


class Serving(Generic[E]):
    """Keeps an engine running that serves the version with the alias `daytime`. During a night, no engine runs."""

    def __init__(
        self,
        home: Home,
        config: NightConfig,
        gate: "Gate | Classroom",
        start: Callable[[Path, Sequence[int]], E],
        opened: Callable[[E], bool],
        say: Callable[[str], None] = say,
    ) -> None:
        """`gate`: the proxy or classroom that clients talk to. `start`: starts an engine for a checkpoint. An engine
        that may outlive this process must inherit the given file descriptors. `opened`: opens the gate to an engine
        and returns True, or returns False if a night has begun. `say`: prints a message.

        Raises InputError if no version has the alias `daytime`, or if that version's checkpoint is damaged or missing.
        """
        self.home, self.config, self.gate = home, config, gate
        self.registry, self.wanted = daytime(home, config)
        self._start, self._opened = start, opened
        self.engine: E | None = None
        self.served: Version | None = None  # the version that the engine serves
        self._lock: TextIO | None = None  # held while an engine exists
        self._say = say
        self._damaged = ""  # the digest of the last version found damaged or missing
        self._printed = ""

    def run(self) -> None:
        """Serve until Ctrl-C or SIGTERM. Raises EngineFailedError if an engine fails to start."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            while True:
                self.step()
                time.sleep(POLL)
        finally:
            self.end()

    def step(self) -> None:
        """Start, stop or replace the engine, depending on the alias and on whether a night is running."""
        if night := running_night(self.home.root):
            self._rest(f"{night} is running; the model comes back when it is over", NIGHT_LONG)
        elif self.engine is not None and not self.engine.running:
            self._rest("the engine died and is started again", LOADING)
        else:
            self._follow_alias()
            if self.served is None or self.served.digest != self.wanted.digest:
                self._serve(self.wanted)

    def end(self) -> None:
        """Stop the engine and release the server's lock, so that a night can use the machine."""
        if self.engine is not None:
            self.engine.end()
        if self._lock is not None:
            self._lock.close()
        self.engine = self.served = self._lock = None

    def _follow_alias(self) -> None:
        """Set `wanted` to the alias's new version if the registry answers and that version's checkpoint is intact."""
        goes_on = f"version {self.wanted.version} still serves"
        try:
            version = self.registry.named(DAYTIME)
        except Exception as error:  # the database and the server's client may raise anything
            self._print(f"MLflow does not answer ({type(error).__name__}); {goes_on}")
            return
        if version is None or version.digest in (self.wanted.digest, self._damaged):
            return
        if is_intact(inside(self.home.checkpoints, version.digest)):
            self.wanted = version
            return
        self._damaged = version.digest  # remember it, because checking a checkpoint takes a second
        self._print(f"version {version.version} is damaged or missing; {goes_on}")

    def _serve(self, wanted: Version) -> None:
        """Replace the engine with one that serves `wanted`. Leave no engine running if a night begins."""
        self._rest(f"version {wanted.version} ({wanted.digest}) is being loaded", LOADING)
        self._lock = take_server_lock(self.home.root, os.getpid())
        if not self._may_serve():  # a night began without seeing the lock
            return self.end()
        checkpoint = inside(self.home.checkpoints, wanted.digest)
        whole = whole_model(checkpoint, self.home, self.config.student.trust_remote_code)
        delete_other_merged(self.home, whole)
        self.engine = self._start(whole, [self._lock.fileno()])
        if not (self.engine.wait_until_healthy(self._may_serve) and self._opened(self.engine)):
            return self.end()
        self.served = wanted
        self._print(f"Ready: version {wanted.version} ({wanted.digest}) serves.")

    def _may_serve(self) -> bool:
        return running_night(self.home.root) is None

    def _rest(self, why: str, retry_after: int) -> None:
        """Close the gate, give the engine up to DRAIN_LIMIT seconds to finish its answers, and stop the engine."""
        self.gate.close(why, retry_after)
        self._print(why)
        limit = time.monotonic() + DRAIN_LIMIT
        while self.engine and self.engine.running and self.gate.under_way and time.monotonic() < limit:
            time.sleep(0.1)
        self.end()

    def _print(self, text: str) -> None:
        if text != self._printed:
            self._say(text)
            self._printed = text


def daytime(home: Home, config: NightConfig) -> tuple[Registry, Version]:
    """Return the model registry, and the version in it that has the alias `daytime`.

    Raises InputError if there is no such version, or if its checkpoint is damaged or missing.
    """
    registry = open_registry(home, config)
    if registry is None or (version := registry.named(DAYTIME)) is None:
        raise InputError(
            f"no version of {config.name} has the alias {DAYTIME} yet: `nightschool night` makes the first"
        )
    if not is_intact(checkpoint := inside(home.checkpoints, version.digest)):
        raise InputError(
            f"{checkpoint} was changed or damaged, or is not here; go back with `nightschool rollback`, "
            "or promote another version"
        )
    return registry, version
