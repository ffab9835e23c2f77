"""Write the report as a page and in a short form, show the short form in Prefect, and log page and exam to MLflow."""

import json
import math
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext

from conf.load import load_night
from conf.storage.durable import read_json, write_atomically
from conf.storage.home import SHORT_REPORT, SUMMARY, Home, InputError
from conf.storage.layout import DIVISION, MANIFEST, QUIZ, is_round
from tasks.evaluation.metrics import ROLES
from tasks.monitoring.incidents import ended_early, incidents
from tasks.monitoring.notify import show_text
from tasks.monitoring.tracking import Tracking
from tasks.registry.promote import intervals_of
from tasks.report.history import past_nights
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tasks.report.queries import benchmark_verdicts, quiz_results
from tasks.report.sections import day_sentences, journal_faults

AGAIN = re.compile(r"-\d+")  # the number of a stage that runs again: distill-2, distill-2_check, round-01/play-1
HOURS = {  # phases that share the night's hours, each with the top-level folders of its stages
    "lessons": {
        *("distill", "self_distill", "rehearsal", "lessons", "import_traces", "reference_solutions"),
        *("ask_teacher", "self_distill_answers", "fit_reward_model", "picks"),
    },
    "rounds": {"round", QUIZ},
    "exam": {"exam", "evaluate"},
}


class Spent(NamedTuple):
    """The time that a committed stage or a round's update took. `end`: a Unix timestamp."""

    end: float
    path: str
    seconds: float


@task(name="report", task_run_name="report", retries=1, cache_policy=NO_CACHE)
def report(
    folder: Path,
    decision: Mapping[str, Any],
    rounds: int,
    alarms: Sequence[str],
    links: Mapping[str, str],
    tracking: Tracking,
) -> dict[str, Any]:
    """Write the report, end the MLflow run, and return the night's summary.

    summary.json is written last, because a night with this file counts as finished.
    """
    summary = summarise(folder, decision, rounds, alarms, links)
    write_report(folder, summary, decision)
    tracking.log_artifact(folder / "report.html")
    tracking.log_artifact(folder / "decide" / "decision.json", "exam")
    for role in ROLES:
        tracking.log_artifact(folder / "evaluate" / role / "evaluations.parquet", f"exam/{role}")
    tracking.tag(decision=summary["decision"], alarms=str(len(alarms)))
    tracking.close_run("FINISHED")
    write_atomically(folder / SUMMARY, json.dumps(summary | {"finished": time.time()}))
    return summary


def write_report(folder: Path, summary: Mapping[str, Any], decision: Mapping[str, Any]) -> None:
    """Write report.html and report.md, and show report.md in Prefect."""
    short = render_markdown(summary, decision, past_nights(folder, summary)[-1].by_hand)
    write_atomically(folder / "report.html", render(folder, summary))
    write_atomically(folder / SHORT_REPORT, short)
    show_text("morning-report", short, f"The night of {folder.name}")


def summarise(
    folder: Path, decision: Mapping[str, Any], rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> dict[str, Any]:
    """Return the night's machine-readable summary, which `nightschool night --json` prints as one line."""
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
        "process_died": early is not None and early.died,
        "incidents": incidents(folder),
        "journal": journal_faults(folder),
        "day": day_sentences(folder),
        "verdicts": benchmark_verdicts(folder),
        "seconds": stage_seconds(folder),
        "wall_seconds": round(wall_seconds(folder), 2),
        "alarms": list(alarms),
        "serving": decision.get("serving", ""),  # empty if MLflow could not be asked, None if no model serves
        "by_hand": decision.get("by_hand", []),
        "withheld": decision.get("withheld"),
        "way_back": way_back(folder),
        "links": dict(links),
        "report": str(folder / "report.html"),
    }


def way_back(folder: Path) -> str:
    """Return the command that undoes the night's promotion.

    The command names the night's configuration if the home has one of its own that leads to another model's versions.
    """
    own, night = Home(folder.parents[1]).config_file, folder / "config.yaml"
    named = own.exists() and _registered_in(own) != _registered_in(night)
    return shlex.join(["nightschool", "rollback", *(["--config", str(night)] if named else [])])


def _registered_in(file: Path) -> tuple[str, str | None] | None:
    """Return the model's name and MLflow's address, or None if the configuration is invalid."""
    try:
        config = load_night(file)
    except InputError:
        return None
    return config.name, config.tracking.tracking_uri


def division_of(folder: Path) -> dict[str, Any] | None:
    """Return the content of division.json, plus the `planned` and the `real` seconds of lessons, rounds and exam.

    The real seconds are wall-clock time. Fitting the reward model counts as lessons, and quizzes count as rounds,
    except the first one, which comes before the hours are divided. Returns None if they have not been divided yet or
    are not limited.
    """
    division = read_json(folder / DIVISION)
    if division is None or division["hours"] is None:
        return None
    stages = [stage for stage in _stages(folder) if stage.path != f"{QUIZ}/start"]
    real = {
        part: _covered(stage for stage in stages if AGAIN.sub("", stage.path.split("/")[0]) in folders)
        for part, folders in HOURS.items()
    }
    return division | {"planned": {part: division[part] for part in HOURS}, "real": real}


def stage_seconds(folder: Path) -> dict[str, float]:
    """Return each stage's seconds, summed over rounds and repeated lessons, in order of the stages' last commits."""
    seconds: dict[str, float] = {}
    for stage in _stages(folder):
        first, *rest = stage.path.split("/")  # `sample` for round-02/refill-1/sample, `evaluate` for evaluate/champion
        name = AGAIN.sub("", rest[-1] if is_round(first) else first)
        seconds[name] = seconds.pop(name, 0.0) + stage.seconds
    return {name: round(value, 2) for name, value in seconds.items() if value}


def wall_seconds(folder: Path) -> float:
    """Return the night's wall-clock time in seconds, without the pauses after interruptions.

    The current flow run counts from its start, as on Prefect's pages. Of earlier flow runs, only the time during which
    committed stages ran counts.
    """
    context = FlowRunContext.get()
    now = time.time()
    started = context.start_time.timestamp() if context else now
    return now - started + _covered(_stages(folder), started)


def _stages(folder: Path) -> list[Spent]:
    """Return the times of the night's committed stages and updates, in the order in which they ended."""
    found = []
    updates = (one.parent / "metrics.json" for one in folder.glob(f"round-*/checkpoint/{MANIFEST}"))
    for file in [*folder.rglob(MANIFEST), *filter(Path.exists, updates)]:
        noted, end, path = json.loads(file.read_text()), file.stat().st_mtime, str(file.parent.relative_to(folder))
        if file.name == MANIFEST:
            found.append(Spent(end, path, noted["seconds"]))
        else:  # an update ends when saving its checkpoint begins
            end, path = end - noted.get("seconds_checkpoint", 0.0), path.replace("checkpoint", "update")
            found.append(Spent(end, path, noted.get("seconds_update", 0.0)))
    return sorted(found)


def _covered(stages: Iterable[Spent], until: float = math.inf) -> float:
    """Return the seconds before `until` (a Unix timestamp) during which at least one of these stages ran."""
    total = 0.0
    for stage in sorted(stages, reverse=True):
        start = min(stage.end - stage.seconds, until)
        total += min(stage.end, until) - start
        until = start
    return total
