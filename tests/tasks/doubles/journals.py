"""Journals, their freezes, and the decisions of earlier nights, written by hand."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from conf.sections.lessons import DayConfig
from models.hf.checkpoint import write_learned
from tasks.journal.freeze import LESSONS, freeze_journal
from tasks.journal.tables import QUARANTINE
from tasks.stage import Artifact, commit
from tasks.tables import read_table

SCHEMAS = LESSONS | {"quarantine": QUARANTINE}
ASKED = [{"role": "user", "content": "2 + 2?"}]
DAYS = [f"2026-11-2{day}" for day in range(5)]


def line(kind: str, **fields: Any) -> str:
    return json.dumps({"version": 1, "kind": kind, "at": "2026-11-20T20:00:00", **fields}, ensure_ascii=False)


def words(text: str) -> str:
    return line("words", text=text)


def corrected(text: str) -> str:
    return line("correction", messages=ASKED, response="3", correction=text)


def pick(responses: list[str], chosen: int, policy: str = "cafe42") -> str:
    return line("preference", messages=ASKED, responses=responses, chosen=chosen, policy=policy)


def journal(home: Path, *lines: str, name: str = "2026-11-20.jsonl") -> Path:
    """Append lines to a file of the journal."""
    file = home / "journal" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", newline="") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    return file


def freeze(
    home: Path,
    date: str,
    day: DayConfig | None = None,
    *,
    start: str = "original",
    joined_levels: tuple[str, ...] = (),
    unseen_share: float = 0.0,
) -> Artifact:
    folder = home / "nights" / date / "freeze_journal"
    folder.mkdir(parents=True)
    freeze_journal.write(
        folder,
        day=day or DayConfig(),
        levels=("1",),
        joined_levels=joined_levels,
        seed="1",
        date=date,
        start=home / "checkpoints" / start,
        unseen_share=unseen_share,
        journal=home / "journal",
    )
    return commit(folder, "freeze_journal", {}, 0.0)


def has_learned(home: Path, checkpoint: str, *lessons: str) -> Path:
    """Write what a checkpoint of a home has learned."""
    folder = home / "checkpoints" / checkpoint
    folder.mkdir(parents=True, exist_ok=True)
    write_learned(folder, lessons)
    return folder


def table(artifact: Artifact, name: str) -> pd.DataFrame:
    schema: pa.Schema = SCHEMAS[name]
    return read_table(artifact.folder / f"{name}.parquet", schema)


def texts(artifact: Artifact) -> list[str]:
    """Return the words of a frozen day."""
    return table(artifact, "words").text.tolist()


def counts(artifact: Artifact, name: str) -> dict[str, int]:
    """Return the counts of a kind of lines, without the zeros."""
    return {origin: count for origin, count in artifact.read_json("counts.json")[name].items() if count}
