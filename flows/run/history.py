"""The history of a home's nights: outcomes, stage times, and a running night's progress and time left."""

import datetime
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from conf.load import config_of, identity
from conf.schema import NightConfig
from conf.storage.durable import read_json
from conf.storage.home import NIGHTS, SUMMARY, Home, InputError
from conf.storage.layout import MANIFEST, committed_rounds, is_round, run_name
from models.hf.checkpoint import learned, parent_of
from tasks.monitoring.incidents import ended_early

PROGRESS = "progress.json"  # in the night's folder: the current stage, for `nightschool status`
STARTED = "started.json"  # in the night's folder: when it first began
ROUND = re.compile(r"round (\d+)\b")


def nights(home: Home, running: str | None = None) -> list[dict[str, Any]]:
    """Return every night with its state, one line of detail and its alarms, oldest first.

    The state of a finished night is `promoted` or `kept`. An unfinished night is `running` if its date equals the
    argument `running`. Otherwise it is `interrupted`, and its detail includes the command that resumes it.
    """
    return [_entry(folder, running) for folder in sorted(home.nights.glob(NIGHTS))]


def unfinished_before(home: Home, date: str, config: NightConfig) -> str | None:
    """Return the day before `date` if its night is the newest, is unfinished and has this configuration, else None.

    The command that began a night can thus resume it after noon. To resume an older night, the user names its date.
    """
    newest = max(home.nights.glob(NIGHTS), default=None)
    day_before = (datetime.date.fromisoformat(date) - datetime.timedelta(days=1)).isoformat()
    if newest is None or newest.name != day_before or (newest / SUMMARY).exists():
        return None
    known = config_of(newest)
    return newest.name if known and identity(known) == identity(config) else None


def resume_command(night: Path) -> str:
    """Return the command that resumes the night whose folder is `night`."""
    return shlex.join(["nightschool", "night", "--config", str(night / "config.yaml"), "--date", night.name])


def finished(nights: Path, name: str, before: str | None = None, *, newest_first: bool = True) -> Iterator[Path]:
    """Yield the folders of the finished nights with this configuration name (before a date, if given).

    The newest comes first, unless `newest_first` is false. If the night of that date has begun, an earlier one that was
    finished only afterwards does not count: it must not change what the later one has begun with.
    """
    begun = first_start(nights / before) if before else None
    for summary in sorted(nights.glob(f"{NIGHTS}/{SUMMARY}"), reverse=newest_first):
        if before and (summary.parent.name >= before or (begun is not None and _finished_at(summary) > begun)):
            continue
        if (known := config_of(summary.parent)) and known.name == name:
            yield summary.parent


def _finished_at(summary: Path) -> float:
    return read_json(summary, {}).get("finished") or summary.stat().st_mtime  # copied files may have new times


def last_finished(nights: Path, name: str, before: str | None = None) -> Path | None:
    """Return the folder of the newest finished night of this configuration name (before a date, if given), or None."""
    return next(finished(nights, name, before), None)


def expected_start(home: Home, config: NightConfig, date: str) -> Path | None:
    """Return the checkpoint with which the night of `date` begins if no alias was moved since the last finished night.

    Returns None before the first night, or if that checkpoint is gone or damaged.
    """
    last = last_finished(home.nights, config.name, date)
    if last is None:
        return None
    summary = json.loads((last / SUMMARY).read_text())
    goes_on = config.start_from == "latest" and summary.get("next_night_begins_with_it")
    served = summary.get("serving") or summary["digests"]["champion"]
    wanted = ([summary["digests"]["candidate"]] if goes_on else []) + [served]
    return next(filter(_is_readable, (home.checkpoints / digest for digest in wanted)), None)


def _is_readable(checkpoint: Path) -> bool:
    try:
        parent_of(checkpoint)
        learned(checkpoint)
    except ValueError:  # damaged
        return False
    return checkpoint.is_dir()


def note_progress(folder: Path, stage: str, done: bool) -> None:
    """Record that a stage has begun or is done. Replaces the progress file atomically, and ignores write errors."""
    draft = folder / f"{PROGRESS}.draft"
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    note = {"stage": stage, "done": done, "at": now, "pid": os.getpid()}
    with suppress(OSError):
        draft.write_text(json.dumps(note))
        draft.rename(folder / PROGRESS)


def read_progress(folder: Path, pid: int) -> dict[str, Any] | None:
    """Return a process's latest progress record (`stage`, `done`, `at`), or None if it has not written one yet."""
    try:
        note = json.loads((folder / PROGRESS).read_text())
    except (OSError, ValueError):
        return None
    return note if note["pid"] == pid else None


def last_report(home: Home, date: str | None, name: str = "report.html") -> Path:
    """Return the path of a night's report, by default the latest one. Raises InputError if there is no report."""
    reports = sorted(home.nights.glob(f"{date or NIGHTS}/{name}"))
    if not reports:
        raise InputError(f"{home.nights}: no report{f' of {date}' if date else ''} yet; `nightschool night` makes one")
    return reports[-1]


def read_round_metrics(folder: Path) -> list[dict[str, float]]:
    """Return the metrics of all committed rounds of a night, in order."""
    return [json.loads((path / "checkpoint" / "metrics.json").read_text()) for path in committed_rounds(folder)]


def round_seconds(folder: Path) -> list[float]:
    """Return the seconds of each uninterrupted round of a night, in order."""
    return [figures["seconds_round"] for figures in read_round_metrics(folder) if "seconds_round" in figures]


def first_start(folder: Path) -> float | None:
    """Return when the night in this folder first began, in seconds since the epoch, or None if that is not recorded.

    The night's hours start at this time, even if the night is resumed later.
    """
    return read_json(folder / STARTED, {}).get("started")


def seconds_left(folder: Path, config: NightConfig, elapsed: float, before: Path | None) -> float | None:
    """Estimate how many more seconds the night in `folder` will take, or return None if `before` is None.

    `elapsed`: seconds since the current stage began. `before`: the last finished night of the same name. What remains
    are the stages that it committed after the last stage that both nights committed, plus tonight's remaining rounds,
    without the quizzes between these rounds.
    """
    if before is None:
        return None
    manifests = [file for file in before.rglob(MANIFEST) if not is_round(file.relative_to(before).parts[0])]
    manifests.sort(key=lambda file: file.stat().st_mtime)
    usual = {str(file.parent.relative_to(before)): json.loads(file.read_text())["seconds"] for file in manifests}
    done = [index for index, path in enumerate(usual, 1) if (folder / path / MANIFEST).exists()]
    left = sum(list(usual.values())[max(done, default=0) :])
    if ended_early(folder) is None and (pace := round_seconds(folder) or round_seconds(before)):
        left += median(pace) * (config.rounds - len(committed_rounds(folder)))
    return max(0.0, left - elapsed)


def _entry(folder: Path, running: str | None) -> dict[str, Any]:
    if (folder / SUMMARY).exists():
        from tasks.evaluation.statistics import Accuracy  # SciPy takes long to import

        summary = json.loads((folder / SUMMARY).read_text())
        before, after = (Accuracy(**summary["accuracy"][policy]) for policy in ("champion", "candidate"))
        state, detail, alarms = summary["decision"], f"{summary['target']}: {before} → {after}", summary["alarms"]
    else:
        alarms = [alarm["sentence"] for alarm in read_json(folder / "alarms.json", [])]
        state, detail = "running", f"last committed: {_last_committed(folder)}"
        if folder.name != running:
            state, detail = "interrupted", f"{detail}; resume with: {resume_command(folder)}"
    return {"night": folder.name, "state": state, "detail": detail, "alarms": alarms}


def _last_committed(folder: Path) -> str:
    committed: list[tuple[float, Path]] = []
    for path, _, files in os.walk(folder):
        with suppress(FileNotFoundError):  # a running night may have removed the file meanwhile
            committed += [(os.stat(f"{path}/{MANIFEST}").st_mtime, Path(path))] if MANIFEST in files else []
    return run_name(str(max(committed)[1].relative_to(folder))) if committed else "nothing yet"
