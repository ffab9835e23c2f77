"""Many small nights in one home: do their costs stay flat once `keep_nights` of them are kept?"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import linear_regression
from typing import Any

from benchmarks.inputs.school import make
from benchmarks.inputs.starter import tiny_student
from benchmarks.machine.child import nightschool
from benchmarks.nights.fixed import LEAST
from benchmarks.nights.whole import date_of
from benchmarks.outputs.page import markdown
from conf.load import STARTER
from flows.orchestration.server import prefect_api

PARTS = ("checkpoints", "exams", "journal", "mlartifacts", "mlflow.db", "nights", "prefect")
KEPT = 7  # nights whose versions and tables a home keeps by default
Line = Mapping[str, Any]


def many_nights(home: Path, nights: int) -> list[Line]:
    """Run the missing nights, each with 16 new worked solutions. Returns a line for each, kept in the home."""
    make(home).chmod(0o700)
    notes = home / "nights.jsonl"
    lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
    student = tiny_student()
    few = [*LEAST, "distill.steps=1", "day.generated_traces=16", f"student={{source: {student.resolve()}, system: ''}}"]
    with prefect_api(home.resolve()) as api:  # one server for all, as `nightschool services` has
        for number in range(len(lines), nights):
            started = time.monotonic()
            settings = (f"--set={setting}" for setting in (*few, f"seed={number}"))
            nightschool(
                home, "night", f"--config={STARTER}", f"--date={date_of(number)}", *settings, PREFECT_API_URL=api
            )
            seconds, sizes = time.monotonic() - started, {part: megabytes(home / part) for part in PARTS}
            count = sum(folder.is_dir() for folder in (home / "checkpoints").iterdir())
            lines.append({"night": number + 1, "seconds": seconds, "checkpoints": count, "mb": sizes})
            with notes.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    return lines


def megabytes(path: Path) -> float:
    """Return the size of a file or of all files under a folder in MB (10^6 bytes). Hard links count once."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum({status.st_ino: status.st_size for status in map(Path.stat, files)}.values()) / 1e6


def page(lines: Sequence[Line]) -> str:
    """Return some nights as a table, and the growth per night since the first `KEPT` nights (least squares)."""
    rows = []
    for index in sorted({0, KEPT, len(lines) // 2, len(lines) - 1} & set(range(len(lines)))):
        night, seconds, checkpoints, *sizes = _columns(lines[index])
        rows.append([night, f"{seconds:.0f}", checkpoints, *(f"{size:.1f}" for size in sizes)])
    if len(lines) > KEPT + 1:
        nights, *columns = zip(*map(_columns, lines[KEPT:]), strict=True)
        rows.append(["growth a night", *(f"{linear_regression(nights, column).slope:+.2f}" for column in columns)])
    return markdown(f"night | seconds | checkpoints | {' | '.join(PARTS)} (MB)", rows)


def _columns(line: Line) -> list[Any]:
    return [line["night"], line["seconds"], line["checkpoints"], *(line["mb"][part] for part in PARTS)]
