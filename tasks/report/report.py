"""The stage `report`: the page, its short form for Prefect and the terminal, and the evidence for MLflow."""

import json
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext

from conf.storage.durable import write_atomically
from conf.storage.home import SHORT_REPORT, SUMMARY
from tasks.evaluation.metrics import ROLES
from tasks.incidents import ended_early, incidents
from tasks.layout import MANIFEST, is_round
from tasks.monitoring.prefect_artifacts import show_link, show_text
from tasks.registry.promote import intervals_of
from tasks.report.history import past_nights
from tasks.report.hours import division_of
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tasks.report.queries import benchmark_verdicts, quiz_results
from tasks.report.sections import day_copy_sentences, journal_faults
from tasks.tracking import Tracking

AGAIN = re.compile(r"-\d+$")  # of a stage that runs twice in a night: distill-2


@task(name="report", task_run_name="report", retries=1, cache_policy=NO_CACHE)
def report(
    folder: Path,
    decision: Mapping[str, Any],
    rounds: int,
    alarms: Sequence[str],
    links: Mapping[str, str],
    tracking: Tracking,
) -> dict[str, Any]:
    """Write the report, end MLflow's run and write summary.json last: from then on the night is finished.

    Returns the summary.
    """
    summary = summarise(folder, decision, rounds, alarms, links)
    write_report(folder, summary, decision)
    if "mlflow" in links:
        show_link("mlflow-run", links["mlflow"], f"the night of {folder.name} in MLflow")
    tracking.log_artifact(folder / "report.html")
    tracking.log_artifact(folder / "decide" / "decision.json", "exam")
    for role in ROLES:
        tracking.log_artifact(folder / "evaluate" / role / "evaluations.parquet", f"exam/{role}")
    tracking.tag(decision=summary["decision"], alarms=str(len(alarms)))
    tracking.close_run("FINISHED")
    write_atomically(folder / SUMMARY, json.dumps(summary))
    return summary


def write_report(folder: Path, summary: Mapping[str, Any], decision: Mapping[str, Any]) -> None:
    """Write report.html, and report.md, which Prefect shows as well."""
    short = render_markdown(summary, decision, past_nights(folder, summary)[-1].by_hand)
    write_atomically(folder / "report.html", render(folder, summary))
    write_atomically(folder / SHORT_REPORT, short)
    show_text("morning-report", short, f"The night of {folder.name}")


def summarise(
    folder: Path, decision: Mapping[str, Any], rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> dict[str, Any]:
    """Return the night for machines: the line that `nightschool night --json` prints."""
    compared, target, early = decision["comparisons"]["candidate"], decision["target"], ended_early(folder)
    roles = (*ROLES, "distilled") if decision["growth"] else ROLES
    intervals = {role: intervals_of(decision, role) for role in roles}
    digests = {role: digest for role, digest in decision["digests"].items() if role in (*roles, "start")}
    return {
        "night": folder.name,
        "decision": "promoted" if decision["promote"] else "kept",
        "reasons": decision["reasons"],
        "target": target,
        "accuracy": {role: intervals[role][target] for role in roles},
        "benchmarks": {part: {role: own[part] for role, own in intervals.items() if part in own} for part in compared},
        "growth": decision["growth"],
        "looks": decision["looks"],
        "quizzes": quiz_results(folder),
        "hours": division_of(folder),
        "alpha": decision["alpha"],
        "next_night_begins_with_it": decision["next_night_begins_with_it"],
        "unpromoted": decision["unpromoted"],
        "digests": digests,
        "rounds": rounds,
        "ended_early": early.why if early else None,
        "incidents": incidents(folder),
        "journal": journal_faults(folder),
        "day_copy": day_copy_sentences(folder),
        "verdicts": benchmark_verdicts(folder),
        "seconds": stage_seconds(folder),
        "wall_seconds": round(wall_seconds(folder), 2),
        "alarms": list(alarms),
        "serving": decision.get("serving"),
        "by_hand": decision.get("by_hand", []),
        "withheld": decision.get("withheld"),
        "way_back": shlex.join(["nightschool", "rollback", "--config", str(folder / "config.yaml")]),
        "links": dict(links),
        "report": str(folder / "report.html"),
    }


def stage_seconds(folder: Path) -> dict[str, float]:
    """Return the seconds of each stage, summed over rounds and repeated lessons, in the order of their last commits."""
    seconds: dict[str, float] = {}
    files = [*folder.rglob(MANIFEST), *folder.glob("round-*/checkpoint/metrics.json")]
    for file in sorted(files, key=lambda file: (file.stat().st_mtime, file)):
        noted, is_update = json.loads(file.read_text()), file.name != MANIFEST
        name = "update" if is_update else _name(str(file.parent.relative_to(folder)))
        seconds[name] = seconds.pop(name, 0.0) + noted["seconds_update" if is_update else "seconds"]
    return {name: round(value, 2) for name, value in seconds.items() if value}


def _name(path: str) -> str:
    """Return a stage's name: `sample` of `round-02/refill-1/sample`, `evaluate` of `evaluate/champion`."""
    first, *rest = path.split("/")
    return rest[-1] if is_round(first) else AGAIN.sub("", first)


def wall_seconds(folder: Path) -> float:
    """Return how long the night ran by the clock, in seconds, without the pauses of an interrupted night.

    The present flow run counts from its start, as on Prefect's pages. Of earlier runs only the time counts that their
    committed stages cover.
    """
    context = FlowRunContext.get()
    now = time.time()
    covered = context.start_time.timestamp() if context else now  # all from then on is counted
    total = now - covered
    stages = [(file.stat().st_mtime, json.loads(file.read_text())["seconds"]) for file in folder.rglob(MANIFEST)]
    for end, seconds in sorted(stages, reverse=True):
        start = min(end - seconds, covered)
        total += min(end, covered) - start
        covered = start
    return total
