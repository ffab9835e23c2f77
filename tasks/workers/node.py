"""What runs on a joined machine: a Ray actor that keeps a worker and the checkpoints it was sent."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from conf.storage.home import inside
from models.engine.environment import engine_environment
from models.hf.checkpoint import is_intact, keep, new_draft
from tasks.workers.worker import Worker, call_once

KEPT = 3  # checkpoints: an adapter, its base, and the one before


class Node:
    """Keeps an engine on its machine: environment, heartbeat and log hold there as at home.

    The actor ends with the night's process or with its Ray node, and its engine with the actor. Its folder stays for
    the next night: a checkpoint that is there already is not sent again. `threads`: the night's own OMP_NUM_THREADS,
    because Ray sets another.
    """

    def __init__(self, threads: str | None) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)
        if threads is not None:
            os.environ["OMP_NUM_THREADS"] = threads
        self.folder, self.lock = claim_folder()
        self.worker = Worker("engine", engine_environment(), self.folder / "engine.log")

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return what a function returns in the engine's process."""
        return self.worker.call(function, *arguments, **options)

    def call_once(
        self, name: str, limit: float, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Return what a function returns in a new child process, which is ended after `limit` seconds."""
        return call_once(name, limit, function, *arguments, **options)

    def close(self) -> None:
        """End the engine; the next call starts a new one."""
        self.worker.close()

    def checkpoint(self, digest: str) -> Path | None:
        """Return a checkpoint's folder here; None where it has to be sent."""
        folder = inside(self.folder, digest)
        if not is_intact(folder):
            return None
        folder.touch()
        return folder

    def begin(self) -> None:
        """Begin to receive a checkpoint; the oldest ones go."""
        new_draft(self.folder).mkdir()
        there = sorted((one for one in self.folder.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
        for folder in there[: -1 - KEPT]:
            shutil.rmtree(folder)

    def receive(self, name: str, piece: bytes) -> None:
        """Add a piece to a file of the checkpoint that is being received."""
        file = self.folder / "draft" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            stream.write(piece)

    def finish(self) -> Path:
        """Return the folder of the checkpoint that was received; its name is the digest of what arrived."""
        return keep(self.folder / "draft", self.folder, durable=False)


def claim_folder() -> tuple[Path, TextIO]:
    """Return a folder in the user's cache that no other actor has, and the lock that holds it."""
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
