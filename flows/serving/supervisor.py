"""The server by day: an engine with the checkpoint of the alias `daytime`, whenever no night needs the machine."""

import os
import time
from pathlib import Path
from typing import TextIO

from conf.schema import NightConfig
from conf.storage.home import Home, InputError, NightError, inside
from conf.storage.locks import night_of, take
from flows.serving.proxy import Gate
from flows.serving.vllm_server import EngineFailedError, EngineServer
from models.checkpoint import is_whole
from tasks.registry.mlflow_registry import DAYTIME, Registry, Version

LOG = "serve.log"  # vLLM's, under the home
POLL = 2.0  # seconds between two looks at the registry and the night's lock
DRAIN_LIMIT = 30.0  # seconds for answers under way when the engine is to go
LOADING, NIGHT_LONG = 10, 60  # seconds after which clients are told to ask again


class Serving:
    """Keeps the engine that ought to serve: none while a night runs, another one when the alias has moved."""

    def __init__(self, home: Home, config: NightConfig, registry: Registry, gate: Gate, folder: Path) -> None:
        """`folder`: for the engine's socket, of this server alone."""
        self.home, self.config, self.registry, self.gate, self.folder = home, config, registry, gate, folder
        self.engine: EngineServer | None = None
        self.served: Version | None = None  # by the engine
        self._able: Version | None = None  # the last that served
        self._lock: TextIO | None = None  # held while there is an engine
        self._refused = self._told = ""

    def run(self, wanted: Version) -> None:
        """Serves for ever, at first a version that can. Raises EngineFailedError where not even that starts."""
        while True:
            wanted = self.look(wanted)
            time.sleep(POLL)

    def look(self, wanted: Version) -> Version:
        """Does what is to be done now. Returns the version that ought to serve."""
        if night := night_of(self.home.root):
            self._rest(f"{night} is running; the model comes back when it is over", NIGHT_LONG)
        elif self.engine is not None and not self.engine.running:
            self._rest("the engine died and is started again", LOADING)
        else:
            wanted = self._moved(wanted)
            if self.served is None or self.served.digest != wanted.digest:
                try:
                    self._serve(wanted)
                except EngineFailedError as error:
                    return self._instead(wanted, error)
        return wanted

    def _instead(self, failed: Version, error: EngineFailedError) -> Version:
        """The version that served before one that cannot; raises the error where there is no other."""
        if self._able is None or self._able.digest == failed.digest:
            raise error
        self.end()
        self._refused = failed.digest
        self._tell(f"version {failed.version} ({failed.digest}) cannot serve: {error}; to try it again, start anew")
        return self._able

    def end(self) -> None:
        """Ends the engine, and gives the machine back."""
        if self.engine is not None:
            self.engine.end()
        if self._lock is not None:
            self._lock.close()
        self.engine = self.served = self._lock = None

    def _serve(self, wanted: Version) -> None:
        """Puts an engine with a checkpoint in the place of the one that is there; none if a night begins meanwhile."""
        self._rest(f"version {wanted.version} ({wanted.digest}) is being loaded", LOADING)
        self._lock = take(self.home.root, os.getpid())
        if not self._may_serve():  # it began before it could see the lock
            return self.end()
        checkpoint = inside(self.home.checkpoints, wanted.digest)
        holds, log = [self._lock.fileno()], self.home.root / LOG
        self.engine = EngineServer(checkpoint, self.config, self.folder, log, holds)
        if not self.engine.wait_until_healthy(self._may_serve):
            return self.end()
        self.served = self._able = wanted
        self.gate.open(self.engine.socket)
        self._tell(f"version {wanted.version} ({wanted.digest}) serves")

    def _may_serve(self) -> bool:
        return night_of(self.home.root) is None

    def _rest(self, why: str, retry_after: int) -> None:
        """Lets what is under way be answered, and ends the engine."""
        self.gate.close(why, retry_after)
        self._tell(why)
        limit = time.monotonic() + DRAIN_LIMIT
        while self.engine and self.engine.running and self.gate.under_way and time.monotonic() < limit:
            time.sleep(0.1)
        self.end()

    def _moved(self, wanted: Version) -> Version:
        """What the alias names now; what it named before, where that cannot be told, or cannot serve."""
        try:
            found = self.registry.named(DAYTIME)
        except Exception as error:  # whatever the database or a server's client come up with
            self._tell(f"the registry does not answer ({type(error).__name__}); version {wanted.version} goes on")
            return wanted
        if found is None or found.digest in (wanted.digest, self._refused):
            return wanted
        if why := unfit(self.home, found):
            self._refused = found.digest  # to read a checkpoint through takes a second: not every time
            self._tell(f"the alias {DAYTIME} moved, but {why}; version {wanted.version} goes on")
            return wanted
        self._refused = ""
        return found

    def _tell(self, said: str) -> None:
        if said != self._told:
            print(said, flush=True)
            self._told = said


def checked_daytime(home: Home, registry: Registry) -> Version:
    """The version under the alias `daytime`. Raises InputError where there is none, or it cannot serve."""
    found = registry.named(DAYTIME)
    if found is None:
        raise none_yet(registry.model)
    if why := unfit(home, found):
        raise InputError(f"serve: {why}; go back with `nightschool rollback`, or promote another version")
    return found


def none_yet(model: str) -> InputError:
    """The error where a model has no version by day."""
    return InputError(f"serve: no version of {model} has the alias {DAYTIME} yet: `nightschool night` makes the first")


def unfit(home: Home, version: Version) -> str | None:
    """Why a version cannot serve here; None where it can."""
    try:
        checkpoint = inside(home.checkpoints, version.digest)
    except NightError as error:
        return str(error)
    if not is_whole(checkpoint):
        return f"{checkpoint} was changed or damaged, or is not here"
    if (checkpoint / "adapter_config.json").exists():
        return f"{checkpoint} is an adapter without its base's weights; nights promote merged ones"
    return None
