"""The morning report: one page, the same short for Prefect and the terminal, and the evidence for MLflow."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.storage.durable import write_atomically
from conf.storage.home import SHORT_REPORT, SUMMARY
from tasks.evaluation.metrics import SITTERS
from tasks.incidents import ended_early, incidents
from tasks.monitoring.prefect_artifacts import show_link, show_text
from tasks.registry.promote import intervals_of
from tasks.report.history import past_nights
from tasks.report.lessons import lesson_figures, step_lessons
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tasks.report.queries import benchmark_verdicts, read_json
from tasks.report.sections import journal_faults
from tasks.stage import MANIFEST
from tasks.tracking import Tracking

AGAIN = re.compile(r"-\d+$")  # the place of what comes twice in a night: distill-2


@task(name="report", task_run_name="report", retries=1, cache_policy=NO_CACHE)
def report(
    folder: Path,
    decision: Mapping[str, Any],
    rounds: int,
    alarms: Sequence[str],
    links: Mapping[str, str],
    tracking: Tracking,
) -> dict[str, Any]:
    """Writes the report, ends MLflow's run and writes summary.json, last of all: from then on the night is finished."""
    summary = summarise(folder, decision, rounds, alarms, links)
    write_report(folder, summary, decision)
    if "mlflow" in links:
        show_link("mlflow-run", links["mlflow"], f"the night of {folder.name} in MLflow")
    if figures := lesson_figures(step_lessons(folder, summary["target"])):
        tracking.log(figures, 0)
    tracking.log_artifact(folder / "report.html")
    tracking.log_artifact(folder / "decide" / "decision.json", "exam")
    for who in SITTERS:
        tracking.log_artifact(folder / "evaluate" / who / "evaluations.parquet", f"exam/{who}")
    tracking.tag(decision=summary["decision"], alarms=str(len(alarms)))
    tracking.close_run("FINISHED")
    write_atomically(folder / SUMMARY, json.dumps(summary))
    return summary


def write_report(folder: Path, summary: Mapping[str, Any], decision: Mapping[str, Any]) -> None:
    """Writes report.html, and report.md, which Prefect shows as well."""
    nights = past_nights(folder, summary)
    short = render_markdown(summary, decision, nights[-1].by_hand if nights else ())
    write_atomically(folder / "report.html", render(folder, summary))
    write_atomically(folder / SHORT_REPORT, short)
    show_text("morning-report", short, f"The night of {folder.name}")


def summarise(
    folder: Path, decision: Mapping[str, Any], rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> dict[str, Any]:
    """What a machine may want to know of a night: the line that `nightschool night --json` prints."""
    intervals = {who: intervals_of(decision, who) for who in SITTERS}
    compared = decision["comparisons"]
    any_part, early = decision["target"], ended_early(folder)
    return {
        "night": folder.name,
        "decision": "promoted" if decision["promote"] else "kept",
        "reasons": decision["reasons"],
        "target": decision["target"],
        "accuracy": {who: intervals[who][decision["target"]] for who in SITTERS},
        "benchmarks": {part: {who: intervals[who][part] for who in SITTERS} for part in compared["candidate"]},
        "growth": decision["growth"],
        "vault": read_json(folder / "vault" / "comparison", "vault.json"),
        "alpha": decision.get("alpha"),
        "false_promotions_a_year": decision.get("false_promotions_a_year"),
        "digests": {
            "champion": compared["candidate"][any_part]["before_digest"],
            "distilled": compared["distilled"][any_part]["after_digest"],
            "candidate": compared["candidate"][any_part]["after_digest"],
        },
        "rounds": rounds,
        "ended_early": early.why if early else None,
        "incidents": incidents(folder),
        "journal": journal_faults(folder),
        "verdicts": benchmark_verdicts(folder),
        "seconds": stage_seconds(folder),
        "alarms": list(alarms),
        "serving": decision.get("serving"),
        "by_hand": decision.get("by_hand", []),
        "withheld": decision.get("withheld"),
        "way_back": shlex.join(["nightschool", "rollback", "--config", str(folder / "config.yaml")]),
        "links": dict(links),
        "report": str(folder / "report.html"),
    }


def stage_seconds(folder: Path) -> dict[str, float]:
    """The seconds of each stage, those of all rounds together, and of a lesson that was taken several times."""
    seconds: dict[str, float] = {}
    for file in sorted(folder.rglob(MANIFEST)):
        place = file.parent.relative_to(folder).parts
        name = place[-1] if place[0].startswith("round-") else AGAIN.sub("", place[0])
        seconds[name] = seconds.get(name, 0.0) + json.loads(file.read_text())["seconds"]
    for file in folder.glob("round-*/checkpoint/metrics.json"):
        seconds["update"] = seconds.get("update", 0.0) + json.loads(file.read_text())["seconds_update"]
    return {name: round(value, 2) for name, value in seconds.items()}
