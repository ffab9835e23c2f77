"""The events of a night, in a log outside of its home, and traps that kill at some of them.

Installed in the night's process and, on the first call, in the trainer's; the product knows nothing of it.
"""

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tests.chaos import disk

DRAWN = re.compile(r"(?<=exams/[0-9a-f]{20})-[0-9a-f]+")  # the random end of a folder of stored answers

WATCH, FLOW = "CHAOS_WATCH", "CHAOS_FLOW"  # the folder of log and traps, and the night's process id
# power: all, and unsynced data is lost; ctrl-c: all, who may end by themselves
Victim = Literal["flow", "trainer", "engine", "server", "all", "power", "ctrl-c"]
CHILDREN = ("trainer", "engine", "server")


@dataclass(frozen=True)
class Trap:
    """Kills a process some seconds after an event."""

    event: str
    victim: Victim
    delay: float = 0.0

    def __str__(self) -> str:
        return f"{self.victim} killed {self.delay:.3f} s after '{self.event}'"


def set_traps(watch: Path, *traps: Trap) -> None:
    """Set the traps of the night's next start."""
    for mark in watch.glob("sprung-*"):
        mark.unlink()
    (watch / "traps.json").write_text(json.dumps([asdict(trap) for trap in traps]))


def sprung(watch: Path, number: int) -> bool:
    """Whether this trap of the latest start has sprung."""
    return (watch / f"sprung-{number}").exists()


def watch_night() -> None:
    """Log events of the night's process, once everything is imported."""
    from mlflow import MlflowClient

    from flows import grpo
    from tasks.stage import Stage
    from tasks.training import trainer_process

    os.environ[FLOW] = str(os.getpid())
    watch_files()
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("tasks.")]
    for stage in {id(value): value for module in modules for value in vars(module).values()}.values():
        if isinstance(stage, Stage):
            stage.write = _watched_stage(stage.write)
    update: Any = _logged(grpo.Rounds._update, lambda a: f"update round {a[1]}", done="updated")
    grpo.Rounds._update = update
    alias = _logged(MlflowClient.set_registered_model_alias, lambda a: f"alias {a[2]} {a[3]}", done="aliased")
    MlflowClient.set_registered_model_alias = alias
    version = _logged(MlflowClient.create_model_version, lambda a: f"register {Path(a[2]).name}", done="registered")
    MlflowClient.create_model_version = version
    for function in (lesson, update_in_trainer, save_state):
        setattr(trainer_process, function.__name__.removesuffix("_in_trainer"), function)
    fire("start")


def watch_files() -> None:
    """Log every rename of a file or folder in the home: renames are what commits."""
    if getattr(os.rename, "watched", False):
        return
    disk.watch(Path(os.environ[WATCH]))
    rename_file = os.rename

    def rename(source: Any, target: Any, **options: Any) -> None:
        path = _relative(target)
        if path is not None:
            fire(f"rename {path}")
        rename_file(source, target, **options)
        if path is not None:
            disk.note_entry(Path(target))
            fire(f"renamed {path}")

    rename.watched = True
    os.rename = rename


def lesson(*arguments: Any, **options: Any) -> Any:
    return _in_trainer("lesson", arguments, options)


def update_in_trainer(*arguments: Any, **options: Any) -> Any:
    return _in_trainer("update", arguments, options)


def save_state(*arguments: Any, **options: Any) -> Any:
    return _in_trainer("save_state", arguments, options)


def _in_trainer(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run in the trainer's process, where `tasks.training.trainer_process` is not patched."""
    from tasks.training import trainer_process

    watch_files()
    first = arguments[0]
    fire(f"trainer {name} {getattr(first, 'digest', getattr(first, 'name', first))}")
    return getattr(trainer_process, name)(*arguments, **options)


def fire(event: str) -> None:
    """Log the event, and spring a trap set for it that has not sprung yet."""
    watch = Path(os.environ[WATCH])
    with (watch / "events.log").open("a") as log:
        log.write(f"{time.monotonic():.6f} {event}\n")
    for number, trap in enumerate(json.loads((watch / "traps.json").read_text())):
        if trap["event"] == event and _is_first(watch, number):
            _spring(Trap(**trap))


def _spring(trap: Trap) -> None:
    if trap.delay:
        timer = threading.Timer(trap.delay, kill, [trap.victim])
        timer.daemon = True
        timer.start()
    else:
        kill(trap.victim)


def kill(victim: Victim) -> None:
    """Kill a process; the night itself where the child does not exist at this moment."""
    flow = int(os.environ[FLOW])
    if victim == "ctrl-c":
        return os.killpg(flow, signal.SIGINT)
    if victim in ("all", "power"):
        os.killpg(flow, signal.SIGKILL)
    children = list(_children(flow, victim))
    if victim in CHILDREN and not children:
        fire(f"no {victim} to kill")
    for pid in children or [flow]:
        os.kill(pid, signal.SIGKILL)


def trace(watch: Path) -> list[tuple[float, str]]:
    """Return all events of all starts so far, with their seconds."""
    lines = (watch / "events.log").read_text().splitlines()
    return [(float(seconds), event) for seconds, _, event in (line.partition(" ") for line in lines)]


def _children(flow: int, role: Victim) -> Iterator[int]:
    """Yield the night's children in this role; only the engine has vLLM's variables in its environment."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            command = (process / "cmdline").read_bytes()
            if parent == flow and _role(command, (process / "environ").read_bytes()) == role:
                yield int(process.name)
        except (OSError, ValueError):
            continue


def _role(command: bytes, environment: bytes) -> Victim | None:
    if b"flows.orchestration.sqlite_server" in command:
        return "server"
    if b"spawn_main" not in command:
        return None
    return "engine" if b"VLLM_ENABLE_V1_MULTIPROCESSING=" in environment else "trainer"


def _is_first(watch: Path, number: int) -> bool:
    try:
        os.close(os.open(watch / f"sprung-{number}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _relative(path: Any) -> str | None:
    """Return a path relative to the home; None for other paths, and for files about which nothing is promised."""
    home = Path(os.environ["NIGHTSCHOOL_HOME"])
    path = Path(path)
    promised = path.is_relative_to(home) and not {"prefect", "mlartifacts", "progress.json"} & set(path.parts)
    return DRAWN.sub("", str(path.relative_to(home))) if promised else None


def _logged(function: Callable[..., Any], event: Callable[[Any], str], done: str) -> Callable[..., Any]:
    """Log an event before the function, and one with another verb after it."""

    def logged(*arguments: Any, **options: Any) -> Any:
        fire(name := event(arguments))
        result = function(*arguments, **options)
        fire(f"{done} {name.partition(' ')[2]}")
        return result

    return logged


def _watched_stage(write: Callable[..., Any]) -> Callable[..., Any]:
    """Log that a stage begins."""

    def watched(folder: Path, **arguments: Any) -> Any:
        fire(f"begin {_relative(folder)}")
        return write(folder, **arguments)

    return watched
