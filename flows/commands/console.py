"""What `nightschool night` shows in the terminal while it runs."""

import json
import logging
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from conf.schema import NightConfig
from conf.storage.layout import committed_rounds
from conf.storage.log import log
from flows.run.history import first_start
from flows.run.speed import minutes_left
from tasks.workers.worker import HoursOverError

err = Console(stderr=True)
RUNS = ("prefect.task_runs", "prefect.flow_runs")


class Clock(Progress):
    """A bar that moves with the time, also within a stage."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Set the bar to the time that has passed, and return what to show."""
        for task in self.tasks:
            task.completed = task.elapsed or 0.0
        return super().get_renderables()


class TimeLeft(ProgressColumn):
    """How many minutes the night may still take; empty if it has no time limit."""

    def render(self, task: Task) -> Text:
        """Return the text for the bar."""
        left = (task.remaining or 0.0) / 60
        return Text("" if task.total is None else f"about {left:.0f} min left" if left > 1 else "almost done")


class NightProgress(logging.Handler):
    """A log handler that shows the current stage with a progress bar, or prints finished stages outside a terminal.

    Both also show the mean reward of the last round in the night's `folder`, and the bar how much of the time is left.
    """

    def __init__(self, config: NightConfig, folder: Path) -> None:
        super().__init__(logging.INFO)
        self.started, self.folder, self.last = time.monotonic(), folder, ""
        self.progress = Clock(
            SpinnerColumn(),
            TextColumn("{task.description:32}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeLeft(),
            TextColumn("{task.fields[last]}"),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        minutes = minutes_left(config, folder.name, first_start(folder))  # None: the bar shows activity but no progress
        self.bar = self.progress.add_task("starting Prefect's server", total=minutes and 60 * minutes, last="")

    def __enter__(self) -> Self:
        self.progress.start()
        log.addHandler(self)
        log.setLevel(logging.INFO)
        for runs in RUNS:
            logging.getLogger(runs).addFilter(_unexpected)
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)
        for runs in RUNS:
            logging.getLogger(runs).removeFilter(_unexpected)
        self.progress.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Show that a stage has begun (the record's `seconds` is None) or has finished. Ignores other records."""
        what, seconds = getattr(record, "stage", None), getattr(record, "seconds", None)
        if what is None:
            return
        if seconds is None:
            self.progress.update(self.bar, description=what, last=self._last_round())
        elif not err.is_terminal:
            self._print(f"{what:34} {seconds:6.1f} s")
        if (last := self._last_round()) != self.last and not err.is_terminal:
            self._print(last)
        self.last = last

    def _last_round(self) -> str:
        """Return the number and mean reward of the last committed round (learned, if there is no other), or ""."""
        rounds = committed_rounds(self.folder)
        if not rounds or self.last.startswith(f"round {len(rounds)}:"):
            return self.last
        metrics = json.loads((rounds[-1] / "checkpoint" / "metrics.json").read_text())
        means = {"reward": metrics.get("reward"), "learned reward": metrics.get("reward/learned")}
        found = [f"{name} {mean:.2f}" for name, mean in means.items() if mean is not None]
        return f"round {len(rounds)}: " + (found[0] if found else "no reward")

    def _print(self, text: str) -> None:
        minutes, rest = divmod(int(time.monotonic() - self.started), 60)
        print(f"{minutes:3d}:{rest:02d}  {text}", file=sys.stderr, flush=True)


def _unexpected(record: logging.LogRecord) -> bool:
    """Return False for what Prefect logs as an error when the night's time ends a stage: the report says so itself."""
    return HoursOverError.__name__ not in record.getMessage()
