"""The trainer's further processes: each takes the same steps on lanes of its own, and keeps nothing.

All hold the same weights, because all take the same optimizer step on the sum of all lanes' gradients. They live and
die with the trainer's process.
"""

import os
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from conf.schema import TrainerConfig
from conf.storage.home import NightError
from models.engine.environment import on_gpu
from models.hf.hardware import resolve_device
from tasks.workers.worker import Worker, WorkerDiedError

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
PATIENCE = 5.0  # seconds in which a process that broke a step is seen to have ended
_helpers: list[Worker] = []
_is_helper = False


def is_helper() -> bool:
    """Return whether this process only helps: it writes no files."""
    return _is_helper


def on_all_processes(
    function: Callable[Concatenate[A, TrainerConfig, P], R],
) -> Callable[Concatenate[A, TrainerConfig, P], R]:
    """Let all helpers call a function too; what it returns in this process is returned.

    It raises WorkerDiedError where one of them dies. After any error they are gone, and the next call starts others.
    """

    @wraps(function)
    def call(first: A, config: TrainerConfig, *arguments: P.args, **options: P.kwargs) -> R:
        if config.processes == 1 or _is_helper:
            return function(first, config, *arguments, **options)
        running = list[Future[Any]]()
        try:
            if len(_helpers) != config.processes - 1:
                _start(config)
            same = partial(call, first, config, *arguments, **options)
            running += [helper.submit(_run_in_helper, same) for helper in _helpers]
            result = function(first, config, *arguments, **options)
            for helper, future in zip(_helpers, running, strict=True):
                helper.result(future)
            return result
        except Exception as error:
            wait(running, PATIENCE)
            died = any(future.done() and isinstance(future.exception(), BrokenProcessPool) for future in running)
            end()
            if died and not isinstance(error, NightError):  # then all had the same error
                raise WorkerDiedError("a process that trained with this one died in a step") from error
            raise

    return call


def broadcast(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function in each helper."""
    for helper in _helpers:
        helper.call(function, *arguments)


def end() -> None:
    """End the helpers; this process trains alone until the next call."""
    from models.optim import lanes

    lanes.leave()
    while _helpers:
        _helpers.pop().end(grace=0)


def _start(config: TrainerConfig) -> None:
    from models.optim import lanes

    end()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # otherwise it listens at the address of the host's name
    on_gpus = resolve_device(config.device).type == "cuda"
    backend, gpus = "nccl" if on_gpus else "gloo", config.gpus or range(config.processes)
    with tempfile.TemporaryDirectory(prefix="nightschool-") as folder:
        rendezvous = Path(folder, "rendezvous")
        for rank in range(1, config.processes):
            _helpers.append(Worker(f"trainer-{rank}", on_gpu(gpus[rank] if on_gpus else None)))
        joining = [
            helper.submit(_join, rank, config.processes, rendezvous, backend) for rank, helper in enumerate(_helpers, 1)
        ]
        lanes.join(0, config.processes, rendezvous, backend)
        for helper, future in zip(_helpers, joining, strict=True):
            helper.result(future)


def _join(rank: int, processes: int, rendezvous: Path, backend: str) -> None:
    """In a helper: join the others."""
    global _is_helper
    from models.optim import lanes

    _is_helper = True
    lanes.join(rank, processes, rendezvous, backend)


def _run_in_helper(function: Callable[[], Any]) -> None:
    """In a helper: call a function.

    A helper that fails ends, so that nobody waits for its gradients; so does one in place of another that died.
    """
    if not _is_helper:
        os._exit(1)
    try:
        function()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
