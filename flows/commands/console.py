"""What `nightschool night` shows in the terminal: progress while it runs, and its outcome."""

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from conf.schema import NightConfig
from flows.run.speed import minutes_left
from tasks.report.markdown import moved_meanwhile, to_do
from tasks.report.text import percent
from tasks.rollouts.verdicts import describe

err = Console(stderr=True)
out = Console()


class NightProgress(logging.Handler):
    """A log handler that shows the night's stages: on a terminal beside a bar of the night's hours, else one a line."""

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
        minutes = minutes_left(config)  # None: the bar only shows that something runs
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
        """Show that a stage begins (`seconds` is None) or is done."""
        what, seconds = getattr(record, "stage", None), getattr(record, "seconds", None)
        if what is None:
            return
        if seconds is None:
            self.progress.update(self.bar, description=what, completed=time.monotonic() - self.started)
            return
        if not err.is_terminal:
            minutes, rest = divmod(int(time.monotonic() - self.started), 60)
            print(f"{minutes:3d}:{rest:02d}  {what:34} {seconds:6.1f} s", file=sys.stderr, flush=True)


def print_summary(summary: Mapping[str, Any]) -> None:
    """Print who won, by how much, how certain that is, and what to do next."""
    table = Table("exam", "champion", "candidate", "problems", title=f"The night of {summary['night']}")
    for part, accuracies in summary["benchmarks"].items():
        cells = [percent(accuracies[policy]["accuracy"]) for policy in ("champion", "candidate")]
        table.add_row(part, *cells, str(accuracies["candidate"]["n"]))
    out.print(table)
    out.print(f"[bold]{_outcome(summary)}[/bold]")
    notes = [*summary["reasons"], f"Verdicts in training: {describe(summary['verdicts'])}.", *summary["incidents"]]
    alarms = [f"[bold red]alarm[/bold red] {escape(alarm)}" for alarm in summary["alarms"]]
    for line in (*map(escape, notes), *alarms):
        out.print(f"  {line}", highlight=False, soft_wrap=True)
    out.print(
        f"What to do next: {to_do(summary)}\nReport: {summary['report']}\nPages:  nightschool ui",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _outcome(summary: Mapping[str, Any]) -> str:
    if summary["decision"] != "promoted":
        return "The champion stays."
    if moved_meanwhile(summary):
        return f"The candidate won, but {summary['serving'][:12]} serves: the alias was moved meanwhile."
    return "The candidate won and serves from now on."
