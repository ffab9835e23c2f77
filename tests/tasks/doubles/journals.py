"""Journals, their freezes, and the decisions of earlier nights, written by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from conf.load import STARTER, frozen_yaml, load_night
from conf.sections.lessons import DayConfig
from tasks.incidents import end_early
from tasks.journal.freeze import LESSONS, freeze_journal
from tasks.journal.lineage import LATER
from tasks.stage import Artifact, commit
from tasks.tables import QUARANTINE, read_table

SCHEMAS = LESSONS | {"quarantine": QUARANTINE}
ASKED = [{"role": "user", "content": "2 + 2?"}]
DAYS = [f"2026-11-2{day}" for day in range(5)]
DONE = ("distill", "lessons/corrections", "lessons/words", "lessons/feedback")


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
    committed: bool = True,
    model: str = "starter",
    champion: str = "original",
    new_levels: tuple[str, ...] = (),
) -> Artifact:
    folder = home / "nights" / date / "freeze_journal"
    folder.mkdir(parents=True)
    figures = freeze_journal.write(
        folder,
        day=day or DayConfig(),
        levels=("1",),
        new_levels=new_levels,
        seed="1",
        date=date,
        model=model,
        champion=home / "checkpoints" / champion,
        journal=home / "journal",
        nights=home / "nights",
        checkpoints=home / "checkpoints",
    )
    return commit(folder, "freeze_journal", {}, 0.0, figures) if committed else Artifact(folder=folder, digest="")


def decided(
    home: Path,
    date: str,
    champion: str,
    candidate: str,
    distilled: str = "",
    *settings: str,
    done: Sequence[str] = DONE,
    steps: int | None = None,
    later: Mapping[str, Sequence[str]] | None = None,
    taken_back: Sequence[str] = (),
    start: str | None = None,
) -> None:
    """Write what a night leaves that came to its decision: its configuration, the lessons `done`, the decision.

    `steps`: it ended early after so many of `stages`. `later`: the solutions that a lesson had no room for.
    `taken_back`: lessons that made the student worse. `start`: what it began with, if not the champion.
    """
    night = home / "nights" / date
    for path in ("decide", *done):
        (night / path).mkdir(parents=True)
    (night / "config.yaml").write_text(frozen_yaml(load_night(STARTER, settings)))
    for path in done:
        if path.startswith("distill"):
            (night / path / LATER).write_text(json.dumps((later or {}).get(path, [])))
        commit(night / path, path, {}, 0.0)
    for path in taken_back:
        verdict = night / f"{path}_check" / "verdict"
        verdict.mkdir(parents=True)
        (verdict / "outcome.json").write_text('{"outcome": "taken_back"}')
        commit(verdict, "judge_lesson", {}, 0.0)
    if steps is not None:
        end_early(night, 0, "The night's hours were over", steps)
    start = start or champion
    digests = {"champion": champion, "start": start, "distilled": distilled or start, "candidate": candidate}
    (night / "decide" / "decision.json").write_text(json.dumps({"digests": digests}))
    commit(night / "decide", "decide", {}, 0.0)


def table(artifact: Artifact, name: str) -> pd.DataFrame:
    schema: pa.Schema = SCHEMAS[name]
    return read_table(artifact.folder / f"{name}.parquet", schema)


def texts(artifact: Artifact) -> list[str]:
    """Return the words that this night took itself."""
    words = table(artifact, "words")
    return words[words.night == artifact.folder.parent.name].text.tolist()


def counts(artifact: Artifact, name: str) -> dict[str, int]:
    """Return the counts of a kind of lines, without the zeros."""
    return {origin: count for origin, count in artifact.read_json("counts.json")[name].items() if count}


def unlearnt(artifact: Artifact, name: str = "corrections", column: str = "correction") -> dict[Any, str]:
    """Return the lessons of a table that the champion has not learnt yet, each with its night."""
    rows = table(artifact, name)
    rows = rows[~rows.learnt.fillna(False)]
    return dict(zip(rows[column], rows.night, strict=True))
