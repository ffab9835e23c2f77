"""Serve the checkpoint of the alias `daytime` whenever no night needs the machine."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TextIO, TypeVar

from conf.storage.home import Home, InputError, inside
from conf.storage.locks import running_night, take_server_lock
from models.hf.checkpoint import is_intact
from tasks.registry.mlflow_registry import DAYTIME, Registry, Version

POLL = 2.0  # seconds between two checks of the registry and the night's lock
DRAIN_LIMIT = 30.0  # seconds for answers under way before the engine ends
LOADING, NIGHT_LONG = 10, 60  # seconds after which clients are told to ask again


def say(text: str) -> None:
    """Print a message at once."""
    print(text, flush=True)


class Engine(Protocol):
    """A process that holds a checkpoint."""

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        ...

    def wait_until_healthy(self, wanted: Callable[[], bool]) -> bool:
        """Return True when it answers, False as soon as it is no longer `wanted`. Raises NightError if it fails."""
        ...

    def end(self) -> None:
        """End it; answers under way are lost."""


E = TypeVar("E", bound=Engine)


class Gate(Protocol):
    """What clients talk to: the proxy of `nightschool serve`, or the classroom."""

    @property
    def under_way(self) -> int:
        """The number of requests that the engine has not answered in full."""
        ...

    def close(self, why: str, retry_after: int) -> None:
        """Use no engine, for this reason; clients may ask again after so many seconds."""


class Serving(Generic[E]):
    """Keep the right engine running: none while a night runs, another one when the alias has moved."""

    def __init__(
        self,
        home: Home,
        registry: Registry,
        gate: Gate,
        start: Callable[[Path, Sequence[int]], E],
        opened: Callable[[E, Path], bool],
        say: Callable[[str], None] = say,
    ) -> None:
        """`start`: starts an engine with a checkpoint, which keeps these file descriptors open until it has ended.

        `opened`: opens the gate to an engine, with its checkpoint, or returns False where a night has begun. `say`:
        where messages go.
        """
        self.home, self.registry, self.gate = home, registry, gate
        self._start, self._opened = start, opened
        self.engine: E | None = None
        self.served: Version | None = None  # by the engine
        self._lock: TextIO | None = None  # held while there is an engine
        self._say = say
        self._damaged = ""  # the digest of a version that cannot serve
        self._printed = ""

    def run(self, wanted: Version) -> None:
        """Serve for ever, starting with `wanted`. Raises EngineFailedError where an engine does not start."""
        while True:
            wanted = self.step(wanted)
            time.sleep(POLL)

    def step(self, wanted: Version) -> Version:
        """Start, end or replace the engine as needed now. Returns the version that ought to serve."""
        if night := running_night(self.home.root):
            self._rest(f"{night} is running; the model comes back when it is over", NIGHT_LONG)
        elif self.engine is not None and not self.engine.running:
            self._rest("the engine died and is started again", LOADING)
        else:
            wanted = self._aliased(wanted)
            if self.served is None or self.served.digest != wanted.digest:
                self._serve(wanted)
        return wanted

    def end(self) -> None:
        """End the engine, and release the machine."""
        if self.engine is not None:
            self.engine.end()
        if self._lock is not None:
            self._lock.close()
        self.engine = self.served = self._lock = None

    def _aliased(self, wanted: Version) -> Version:
        """Return the version under the alias; `wanted` if the registry does not answer or that one is damaged."""
        try:
            version = self.registry.named(DAYTIME)
        except Exception as error:  # whatever the database or a server's client raise
            self._print(f"the registry does not answer ({type(error).__name__}); version {wanted.version} goes on")
            return wanted
        if version is None or version.digest in (wanted.digest, self._damaged):
            return wanted
        if is_intact(inside(self.home.checkpoints, version.digest)):
            return version
        self._damaged = version.digest  # reading a checkpoint takes a second: not at every step
        self._print(f"version {version.version} is damaged or missing; version {wanted.version} goes on")
        return wanted

    def _serve(self, wanted: Version) -> None:
        """Replace the engine by one with another checkpoint; by none if a night begins meanwhile."""
        self._rest(f"version {wanted.version} ({wanted.digest}) is being loaded", LOADING)
        self._lock = take_server_lock(self.home.root, os.getpid())
        if not self._may_serve():  # a night began before it could see the lock
            return self.end()
        checkpoint = inside(self.home.checkpoints, wanted.digest)
        self.engine = self._start(checkpoint, [self._lock.fileno()])
        if not self.engine.wait_until_healthy(self._may_serve):
            return self.end()
        if not self._opened(self.engine, checkpoint):
            return self.end()
        self.served = wanted
        self._print(f"Ready: version {wanted.version} ({wanted.digest}) serves.")

    def _may_serve(self) -> bool:
        return running_night(self.home.root) is None

    def _rest(self, why: str, retry_after: int) -> None:
        """Let the engine answer what is under way, and end it."""
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


def checked_daytime(home: Home, registry: Registry) -> Version:
    """Return the version under the alias `daytime`. Raises InputError if there is none, or it cannot serve."""
    version = registry.named(DAYTIME)
    if version is None:
        raise no_daytime(registry.model)
    if not is_intact(checkpoint := inside(home.checkpoints, version.digest)):
        raise InputError(
            f"{checkpoint} was changed or damaged, or is not here; go back with `nightschool rollback`, "
            "or promote another version"
        )
    return version


def no_daytime(model: str) -> InputError:
    """Return the error of a model that no version serves yet."""
    return InputError(f"no version of {model} has the alias {DAYTIME} yet: `nightschool night` makes the first")
