"""A worker on another machine, seen from the night."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from conf.storage.home import DIGEST, NightError
from models.hf.checkpoint import base_of
from tasks.workers.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
PIECE = 64 * 2**20  # bytes of a checkpoint in one message


class RemoteWorker(Worker):
    """A worker that another machine's actor (`tasks/workers/node.py`) keeps.

    A checkpoint among a call's arguments is sent there first, unless it is there.
    """

    def __init__(self, name: str, actor: Any, on_loss: Callable[[str], None]) -> None:
        super().__init__(name, on_loss=lambda sentence: on_loss(f"{name}: {sentence}"))
        self._actor = actor

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function there. Raises what it raises, or Ray's error where the machine is lost."""
        there = [self._sent(arg) if isinstance(arg, Path) and DIGEST.fullmatch(arg.name) else arg for arg in args]
        return self.ask("call", function, there, kwargs)

    def call_once(self, name: str, limit: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function there, in a new child process that is ended after `limit` seconds. Raises as `call` does."""
        return self.ask("call_once", name, limit, function, args, kwargs)

    def close(self, grace: float = 5.0) -> None:
        """End the engine there; the next call starts a new one."""
        self.ask("close")

    def end(self, grace: float = 5.0) -> None:
        """End the actor, and with it its engine."""
        import ray

        with suppress(Exception):  # it has ended with its machine, or Ray has
            ray.kill(self._actor)

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the actor returns."""
        import ray

        return ray.get(self.begin(method, *arguments))

    def begin(self, method: str, *arguments: Any) -> Any:
        """Call a method of the actor, and return a reference to its answer (`ray.get`)."""
        return getattr(self._actor, method).remote(*arguments)

    def _sent(self, checkpoint: Path) -> Path:
        """Return a checkpoint's folder there; an adapter's base is sent along."""
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
