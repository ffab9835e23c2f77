"""What happens in a night, as named events in a log outside of its home; and the traps that kill at some of them.

It is installed in the night's process and, on the first call, in the trainer's: the product knows nothing of it.
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

DRAWN = re.compile(r"(?<=/draft-[0-9a-f]{20})-[0-9a-f]+")  # a draft of kept exams ends in what is drawn by lot

WATCH, FLOW = "CHAOS_WATCH", "CHAOS_FLOW"  # the folder of log and trap, and the night's process id
Victim = Literal["flow", "trainer", "engine", "server", "all", "power"]  # power: all, and what was not synced is gone
CHILDREN = ("trainer", "engine", "server")


@dataclass(frozen=True)
class Trap:
    """Whom to kill, how many seconds after which event."""

    event: str
    victim: Victim
    delay: float = 0.0

    def __str__(self) -> str:
        return f"{self.victim} killed {self.delay:.3f} s after '{self.event}'"


def set_traps(watch: Path, *traps: Trap) -> None:
    """For the next start of the night; without any nothing happens to it."""
    for mark in watch.glob("sprung-*"):
        mark.unlink()
    (watch / "traps.json").write_text(json.dumps([asdict(trap) for trap in traps]))


def sprung(watch: Path, number: int) -> bool:
    """Whether this one of the traps of the latest start has sprung."""
    return (watch / f"sprung-{number}").exists()


def watch_night() -> None:
    """In the night's process, once everything is imported."""
    from mlflow import MlflowClient

    from flows import grpo
    from tasks.stage import Stage
    from tasks.training import trainer_process

    os.environ[FLOW] = str(os.getpid())
    watch_files()
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("tasks.")]
    for stage in {id(found): found for module in modules for found in vars(module).values()}.values():
        if isinstance(stage, Stage):
            stage.write = _told(stage.write, lambda arguments: f"begin {_place(arguments[0])}")
    update: Any = _told(grpo.Rounds._update, lambda a: f"update round {a[1]}", done="updated")
    grpo.Rounds._update = update
    alias = _told(MlflowClient.set_registered_model_alias, lambda a: f"alias {a[2]} {a[3]}", done="aliased")
    MlflowClient.set_registered_model_alias = alias
    version = _told(MlflowClient.create_model_version, lambda a: f"register {Path(a[2]).name}", done="registered")
    MlflowClient.create_model_version = version
    for function in (lesson, update_in_trainer, save_state):
        setattr(trainer_process, function.__name__.removesuffix("_in_trainer"), function)
    fire("start")


def watch_files() -> None:
    """Every move of a file or folder in the home, which is how things come to count."""
    if getattr(os.rename, "watched", False):
        return
    disk.watch(Path(os.environ[WATCH]))
    moved = os.rename

    def rename(source: Any, target: Any, **options: Any) -> None:
        what = _place(target)
        if what is not None:
            fire(f"rename {what}")
        moved(source, target, **options)
        if what is not None:
            disk.note_entry(Path(target))
            fire(f"renamed {what}")

    rename.watched = True  # pyright: ignore
    os.rename = rename


def lesson(*arguments: Any, **options: Any) -> Any:
    return _in_trainer("lesson", arguments, options)


def update_in_trainer(*arguments: Any, **options: Any) -> Any:
    return _in_trainer("update", arguments, options)


def save_state(*arguments: Any, **options: Any) -> Any:
    return _in_trainer("save_state", arguments, options)


def _in_trainer(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Runs in the trainer's process, where `tasks.training.trainer_process` is as it was written."""
    from tasks.training import trainer_process

    watch_files()
    first = arguments[0]
    fire(f"trainer {name} {getattr(first, 'digest', getattr(first, 'name', first))}")
    return getattr(trainer_process, name)(*arguments, **options)


def fire(event: str) -> None:
    """Notes the event, and springs the trap that is set there and has not sprung yet."""
    watch = Path(os.environ[WATCH])
    with (watch / "events.log").open("a") as log:
        log.write(f"{time.monotonic():.6f} {event}\n")
    for number, found in enumerate(json.loads((watch / "traps.json").read_text())):
        if found["event"] == event and _first(watch, number):
            _spring(Trap(**found))


def _spring(trap: Trap) -> None:
    if trap.delay:
        timer = threading.Timer(trap.delay, kill, [trap.victim])
        timer.daemon = True
        timer.start()
    else:
        kill(trap.victim)


def kill(victim: Victim) -> None:
    """A child that is not there at that moment cannot be killed: then the night is."""
    flow = int(os.environ[FLOW])
    if victim in ("all", "power"):
        os.killpg(flow, signal.SIGKILL)
    children = list(_children(flow, victim))
    if victim in CHILDREN and not children:
        fire(f"no {victim} to kill")
    for pid in children or [flow]:
        os.kill(pid, signal.SIGKILL)


def trace(watch: Path) -> list[tuple[float, str]]:
    """All events of all starts so far, with their seconds."""
    lines = (watch / "events.log").read_text().splitlines()
    return [(float(seconds), event) for seconds, _, event in (line.partition(" ") for line in lines)]


def _children(flow: int, role: Victim) -> Iterator[int]:
    """The night's child in this role; what vLLM needs stands in the environment of the engine's alone."""
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
    return "engine" if b"VLLM_CPU_KVCACHE_SPACE=" in environment else "trainer"


def _first(watch: Path, number: int) -> bool:
    try:
        os.close(os.open(watch / f"sprung-{number}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _place(path: Any) -> str | None:
    """A path in the home as the log calls it; None of what lies elsewhere, or is not ours to promise."""
    home = Path(os.environ["NIGHTSCHOOL_HOME"])
    path = Path(path)
    ours = path.is_relative_to(home) and not {"prefect", "mlartifacts", "progress.json"} & set(path.parts)
    return DRAWN.sub("", str(path.relative_to(home))) if ours else None


def _told(function: Callable[..., Any], event: Callable[[Any], str], done: str | None = None) -> Callable[..., Any]:
    """The function, with an event before it and, if wanted, one of the same name with another verb after it."""

    def told(*arguments: Any, **options: Any) -> Any:
        fire(name := event(arguments))
        found = function(*arguments, **options)
        if done is not None:
            fire(f"{done} {name.partition(' ')[2]}")
        return found

    return told
