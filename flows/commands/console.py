"""What a person sees in the terminal: progress while the night runs, and its outcome."""

import json
import logging
import re
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from conf.schema import NightConfig
from flows.run.estimate import places
from tasks.report.markdown import EMPTY, moved_meanwhile, to_do
from tasks.rollouts.verdicts import told
from tasks.stage import run_name

err = Console(stderr=True)
out = Console()

IN_A_ROUND = ("select prompts", "sample", "score", "credit", "update")
OF_A_ROUND = re.compile(rf"round \d+ · (?:{'|'.join(IN_A_ROUND)})")


class NightProgress(logging.Handler):
    """A bar over the night's stages where a person looks on; one line a stage where not. It listens to the log."""

    def __init__(self, config: NightConfig) -> None:
        super().__init__(logging.INFO)
        self.started = time.monotonic()
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:32}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self.foreseen = {run_name(place) for place in ("enroll", *places(config))}
        self.done: set[str] = set()
        self.bar = self.progress.add_task("starting Prefect's server", total=self._stages(config.rounds))

    def __enter__(self) -> Self:
        self.progress.start()
        logging.getLogger("nightschool").addHandler(self)
        logging.getLogger("nightschool").setLevel(logging.INFO)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("nightschool").removeHandler(self)
        self.progress.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """A stage begins (its `seconds` are None) or is done, or the night makes do with fewer `rounds`."""
        what, seconds = getattr(record, "stage", None), getattr(record, "seconds", None)
        if (rounds := getattr(record, "rounds", None)) is not None:
            self.progress.update(self.bar, total=self._stages(rounds))
        if what is None:
            return
        if seconds is None:
            self.progress.update(self.bar, description=what)
            return
        if what in self.foreseen or OF_A_ROUND.fullmatch(what):
            self.done.add(what)
            self.progress.update(self.bar, completed=len(self.done))
        if not err.is_terminal:
            minutes, rest = divmod(int(time.monotonic() - self.started), 60)
            print(f"{minutes:3d}:{rest:02d}  {what:34} {seconds:6.1f} s", file=sys.stderr, flush=True)

    def _stages(self, rounds: int) -> int:
        return len(self.foreseen) + len(IN_A_ROUND) * rounds


def say_json(value: Any) -> None:
    """Exactly one line on standard output."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def _outcome(summary: Mapping[str, Any]) -> str:
    if summary["decision"] != "promoted":
        return "The champion stays."
    if moved_meanwhile(summary):
        return f"The candidate won, but {summary['serving'][:12]} serves: the alias was moved meanwhile."
    return "The candidate won and serves from now on."


def say_summary(summary: Mapping[str, Any]) -> None:
    """Who won, by how much, how certain that is, and what to do next."""
    table = Table(
        "exam", "champion", "after distillation", "candidate", "problems", title=f"The night of {summary['night']}"
    )
    for part, accuracies in summary["benchmarks"].items():
        cells = [f"{accuracies[who]['accuracy']:.3f}" for who in ("champion", "distilled", "candidate")]
        table.add_row(part, *cells, str(accuracies["candidate"]["n"]))
    out.print(table)
    out.print(f"[bold]{_outcome(EMPTY | dict(summary))}[/bold]")
    for reason in summary["reasons"]:
        out.print(f"  {escape(reason)}", highlight=False, soft_wrap=True)
    if verdicts := summary.get("verdicts"):  # a night of an earlier version has none
        out.print(f"  Verdicts in training: {told(verdicts)}.", highlight=False, soft_wrap=True)
    for incident in summary.get("incidents", []):
        out.print(f"  {escape(incident)}", highlight=False, soft_wrap=True)
    for alarm in summary["alarms"]:
        out.print(f"  [bold red]alarm[/bold red] {escape(alarm)}", highlight=False, soft_wrap=True)
    out.print(
        f"What to do next: {to_do(EMPTY | dict(summary))}\nReport: {summary['report']}\nPages:  nightschool ui",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def say_findings(findings: Sequence[Any]) -> None:
    """The doctor's findings as a table."""
    colours = {"ok": "green", "warning": "yellow", "error": "red"}
    table = Table("", "what", "found", "advice", box=None)
    for finding in findings:
        table.add_row(f"[{colours[finding.level]}]{finding.level}", finding.name, finding.found, finding.advice)
    out.print(table)
