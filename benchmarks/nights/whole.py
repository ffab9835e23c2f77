"""Whole nights, each in a home of its own."""

import datetime
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.inputs.school import make
from benchmarks.machine.child import nightschool
from benchmarks.nights.timed import DATE
from conf.load import STARTER
from conf.storage.layout import committed_json
from tasks.monitoring.notify import VARIABLE


def date_of(night: int, first: str = DATE) -> str:
    """Return the date of a night in a row of nights, of which number 0 is the `first`."""
    return (datetime.date.fromisoformat(first) + datetime.timedelta(days=night)).isoformat()


def whole_night(home: Path, *settings: str, config: Path = STARTER, date: str = DATE) -> dict[str, Any]:
    """Run a night, resume it if it was interrupted, or read it if it is finished. Returns its summary.

    The summary also has the night's `folder`, and the `minutes` of the whole command (None if it was interrupted).
    Raises ValueError if the night refused lines of the journal, without which it measures something else.
    """
    folder, note, started = home / "nights" / date, home / f"minutes-{date}.txt", time.monotonic()
    begun = folder.exists()
    arguments = ["--config", str(config), "--date", date, *(f"--set={setting}" for setting in settings)]
    summary = nightschool(make(home), "night", *arguments, **{VARIABLE: ""})  # nobody's chat gets these reports
    if not begun:
        note.write_text(str((time.monotonic() - started) / 60))
    if (committed_json(folder / "freeze_journal", "counts.json") or {}).get("quarantined"):
        raise ValueError(f"{folder / 'freeze_journal' / 'quarantine.parquet'}: the night refused these lines")
    return summary | {"folder": folder, "minutes": float(note.read_text()) if note.exists() else None}


def outcome(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a night solved, as [right, asked], untouched and before and after its rounds; flips and minutes."""
    growth = found["growth"]
    looks = {"untouched": found["accuracy"]["champion"], "before": growth["before"], "after": growth["after"]}
    solved = {name: [round(one["accuracy"] * one["n"]), int(one["n"])] for name, one in looks.items()}
    return {"minutes": found["minutes"], **solved, "gained": growth["gained"], "lost": growth["lost"]}


def sampled(found: dict[str, Any], config: Path, target: dict[str, Any], max_completion_tokens: int) -> dict[str, Any]:
    """Have the students from before and after a night's rounds sample answers, `target["samples"]` to each problem.

    Returns `mean_at_<samples>`, the shares of right answers before and after, and `differences`, the number of problems
    by how many more of their answers are right afterwards.
    """
    before, after = found["digests"]["distilled"], found["digests"]["candidate"]
    exam = f'exam={{"target": {json.dumps(target)}, "max_completion_tokens": {max_completion_tokens}}}'
    with tempfile.NamedTemporaryFile(suffix=".parquet") as rows:
        arguments = [after, "--against", before, "--config", str(config), "--set", exam, "--rows", rows.name]
        nightschool(found["folder"].parents[1], "evaluate", *arguments)
        table: Any = pd.read_parquet(rows.name)
    shares = table[table.sampled].groupby(["checkpoint", "problem_id"]).correct.mean().astype(float)
    more = target["samples"] * (shares[after] - shares[before])
    means = [float(shares[digest].mean()) for digest in (before, after)]
    return {f"mean_at_{target['samples']}": means, "differences": Counter(f"{each:.0f}" for each in more)}
