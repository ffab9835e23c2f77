"""What `nightschool night` shows in the terminal while it runs."""

import logging
import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from conf.schema import NightConfig
from flows.run.speed import minutes_left

err = Console(stderr=True)


class NightProgress(logging.Handler):
    """A log handler that shows the current stage with a progress bar, or prints finished stages outside a terminal."""

    def __init__(self, config: NightConfig) -> None:
        super().__init__(logging.INFO)
        self.started = time.monotonic()
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:32}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        minutes = minutes_left(config)  # None: the bar shows activity but no progress
        self.bar = self.progress.add_task("starting Prefect's server", total=minutes and 60 * minutes)

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
        if seconds is None:
            self.progress.update(self.bar, description=what, completed=time.monotonic() - self.started)
            return
        if not err.is_terminal:
            minutes, rest = divmod(int(time.monotonic() - self.started), 60)
            print(f"{minutes:3d}:{rest:02d}  {what:34} {seconds:6.1f} s", file=sys.stderr, flush=True)
