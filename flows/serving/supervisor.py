"""Serve the checkpoint of the alias `daytime` whenever no night needs the machine."""

import os
import time
from pathlib import Path
from typing import TextIO

from conf.schema import NightConfig
from conf.storage.home import Home, InputError, inside
from conf.storage.locks import running_night, take_server_lock
from flows.serving.proxy import Gate
from flows.serving.vllm_server import EngineServer
from models.checkpoint import is_intact
from tasks.registry.mlflow_registry import DAYTIME, Registry, Version

LOG = "serve.log"  # vLLM's, under the home
POLL = 2.0  # seconds between two checks of the registry and the night's lock
DRAIN_LIMIT = 30.0  # seconds for answers under way before the engine ends
LOADING, NIGHT_LONG = 10, 60  # seconds after which clients are told to ask again


class Serving:
    """Keep the right engine running: none while a night runs, another one when the alias has moved."""

    def __init__(self, home: Home, config: NightConfig, registry: Registry, gate: Gate, folder: Path) -> None:
        """`folder`: for the engine's socket, of this server alone."""
        self.home, self.config, self.registry, self.gate, self.folder = home, config, registry, gate, folder
        self.engine: EngineServer | None = None
        self.served: Version | None = None  # by the engine
        self._lock: TextIO | None = None  # held while there is an engine
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
        holds, log = [self._lock.fileno()], self.home.root / LOG
        self.engine = EngineServer(checkpoint, self.config, self.folder, log, holds)
        if not self.engine.wait_until_healthy(self._may_serve):
            return self.end()
        self.served = wanted
        self.gate.open(self.engine.socket)
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
            print(text, flush=True)
            self._printed = text


def checked_daytime(home: Home, registry: Registry) -> Version:
    """Return the version under the alias `daytime`. Raises InputError if there is none, or it cannot serve."""
    version = registry.named(DAYTIME)
    if version is None:
        raise no_daytime(registry.model)
    if not is_intact(checkpoint := inside(home.checkpoints, version.digest)):
        raise InputError(
            f"serve: {checkpoint} was changed or damaged, or is not here; go back with `nightschool rollback`, "
            "or promote another version"
        )
    return version


def no_daytime(model: str) -> InputError:
    """Return the error of a model that no version serves yet."""
    return InputError(f"serve: no version of {model} has the alias {DAYTIME} yet: `nightschool night` makes the first")
