"""What `nightschool night` shows in the terminal while it runs."""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from conf.schema import NightConfig
from conf.storage.layout import committed_rounds
from flows.run.speed import minutes_left

err = Console(stderr=True)


class NightProgress(logging.Handler):
    """A log handler that shows the current stage with a progress bar, or prints finished stages outside a terminal.

    Both also show the mean reward of the last round in the night's `folder`, and how much time is left at most.
    """

    def __init__(self, config: NightConfig, folder: Path) -> None:
        super().__init__(logging.INFO)
        self.started, self.folder, self.last = time.monotonic(), folder, ""
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:32}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}"),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self.minutes = minutes = minutes_left(config)  # None: the bar shows activity but no progress
        self.bar = self.progress.add_task("starting Prefect's server", total=minutes and 60 * minutes, last="")

    def __enter__(self) -> Self:
        self.progress.start()
        logging.getLogger("nightschool").addHandler(self)
        logging.getLogger("nightschool").setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("nightschool").removeHandler(self)
        self.progress.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Show that a stage has begun (the record's `seconds` is None) or has finished. Ignores other records."""
        what, seconds = getattr(record, "stage", None), getattr(record, "seconds", None)
        if what is None:
            return
        last, self.last = self.last, self._last_round()
        if seconds is None:
            done = time.monotonic() - self.started
            self.progress.update(self.bar, description=what, completed=done, last=self.last)
        elif not err.is_terminal:
            self._print(f"{what:34} {seconds:6.1f} s")
        if self.last != last and not err.is_terminal:
            self._print(self.last)

    def _last_round(self) -> str:
        """Return the number and mean reward of the last committed round, and the time left; empty before round 1."""
        rounds = committed_rounds(self.folder)
        if not rounds or self.last.startswith(f"round {len(rounds)}:"):
            return self.last
        reward = json.loads((rounds[-1] / "checkpoint" / "metrics.json").read_text())["reward"]
        text = f"round {len(rounds)}: reward {reward:.2f}"
        if self.minutes is None:
            return text
        return f"{text}, at most {max(0, self.minutes - (time.monotonic() - self.started) / 60):.0f} minutes left"

    def _print(self, text: str) -> None:
        minutes, rest = divmod(int(time.monotonic() - self.started), 60)
        print(f"{minutes:3d}:{rest:02d}  {text}", file=sys.stderr, flush=True)
