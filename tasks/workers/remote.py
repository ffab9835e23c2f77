"""A worker on another machine: the handle that the night uses, and the Ray actor that runs the worker there."""

import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from conf.storage.home import DIGEST, NightError, inside
from models.engine.environment import engine_environment
from models.hf.checkpoint import base_of, is_intact, keep, new_draft
from tasks.workers.worker import P, R, Worker

PIECE = 64 * 2**20  # bytes of a checkpoint that one message carries
KEPT = 3  # checkpoints per machine: an adapter, its base, and the previous one


class RemoteWorker(Worker):
    """The night's handle to a worker that an actor (`EngineActor`) runs on another machine.

    Before a call, each checkpoint among the arguments is sent to that machine, unless the machine already has it.
    """

    def __init__(self, name: str, actor: Any, on_loss: Callable[[str], None]) -> None:
        super().__init__(name, on_loss=lambda sentence: on_loss(f"{name}: {sentence}"))
        self._actor = actor

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function on the other machine. Raises the function's error, or Ray's error if the machine is lost."""
        there = [self._sent(arg) if isinstance(arg, Path) and DIGEST.fullmatch(arg.name) else arg for arg in args]
        return self.ask("call", function, there, kwargs)

    def close(self, grace: float = 5.0) -> None:
        """Stop the engine on the other machine. The next call starts a new one."""
        self.ask("close")

    def end(self, grace: float = 5.0) -> None:
        """Kill the actor on the other machine, and with it the engine."""
        import ray

        with suppress(Exception):  # the actor was lost with its machine, or Ray has shut down
            ray.kill(self._actor)

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the actor, and return its result."""
        import ray

        return ray.get(self.begin(method, *arguments))

    def begin(self, method: str, *arguments: Any) -> Any:
        """Start a method of the actor, and return a reference to its result for `ray.get`."""
        return getattr(self._actor, method).remote(*arguments)

    def _sent(self, checkpoint: Path) -> Path:
        """Send a checkpoint (for an adapter, its base first) unless the machine has it. Return the folder there."""
        if (base := base_of(checkpoint)) != checkpoint:
            self._sent(base)
        if (there := self.ask("checkpoint", checkpoint.name)) is not None:
            return there
        self.ask("begin")
        for file in sorted(file for file in checkpoint.rglob("*") if file.is_file()):
            with file.open("rb") as stream:
                while piece := stream.read(PIECE):
                    self.ask("receive", str(file.relative_to(checkpoint)), piece)
        there = self.ask("finish")
        if there.name != checkpoint.name:
            raise NightError(f"the checkpoint {checkpoint.name} arrived as {there.name}")
        return there


class EngineActor:
    """A Ray actor that runs an engine on its machine, with the environment, heartbeat and log that a local engine has.

    The actor ends with the night's process or with its Ray node, and the engine ends with the actor. The folder with
    the received checkpoints stays for the next night, so that none has to be sent twice. `threads`: the night's
    OMP_NUM_THREADS, which replaces the value that Ray sets.
    """

    def __init__(self, threads: str | None) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)
        if threads is not None:
            os.environ["OMP_NUM_THREADS"] = threads
        self.folder, self.lock = claim_folder()
        self.worker = Worker("engine", engine_environment(), self.folder / "engine.log")

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function in the engine's process, and return its result."""
        return self.worker.call(function, *arguments, **options)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the actor itself, and return its result."""
        return function(*arguments)

    def close(self) -> None:
        """Stop the engine. The next call starts a new one."""
        self.worker.close()

    def checkpoint(self, digest: str) -> Path | None:
        """Return a checkpoint's folder on this machine, or None if the checkpoint has to be sent."""
        folder = inside(self.folder, digest)
        if not is_intact(folder):
            return None
        folder.touch()
        return folder

    def begin(self) -> None:
        """Prepare to receive a checkpoint. Of the earlier checkpoints, delete all but the KEPT used last."""
        new_draft(self.folder).mkdir()
        there = sorted((one for one in self.folder.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
        for folder in there[: -1 - KEPT]:
            shutil.rmtree(folder)

    def receive(self, name: str, piece: bytes) -> None:
        """Append a piece to the file `name` of the checkpoint that is being received."""
        file = self.folder / "draft" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            stream.write(piece)

    def finish(self) -> Path:
        """Keep the received checkpoint, and return its folder. The folder's name is the digest of what arrived."""
        return keep(self.folder / "draft", self.folder, durable=False)


def claim_folder() -> tuple[Path, TextIO]:
    """Return a folder in the user's cache that no other actor uses, and the open lock file that reserves it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nightschool"
    number = 0
    while True:
        folder = cache / f"node-{number}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return folder, lock
        except BlockingIOError:
            lock.close()
            number += 1
