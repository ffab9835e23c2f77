"""Upgrade a home from version 0.1: record next to each checkpoint which lessons it has learned, as later versions do.

Version 0.1 recorded only which bytes of the journal each night had read (`freeze_journal/taken.json`). A checkpoint's
lessons are therefore inferred from the nights that made the checkpoint.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from itertools import takewhile
from pathlib import Path
from typing import Any

from conf.load import load_night
from conf.storage.durable import write_atomically
from conf.storage.home import LAYOUT, NIGHTS, Home
from conf.storage.journal import LESSON, Conversation, Trace
from conf.storage.layout import check_path
from models.hf.checkpoint import learned, write_learned
from tasks.journal.held_out import is_judge
from tasks.journal.read import Line, valid_lines
from tasks.monitoring.incidents import ended_early
from tasks.stage import committed

CHANNELS = {"preference": "picks", "correction": "corrections", "feedback": "feedback", "words": "words"}


def prepare_home(home: Home) -> None:
    """Record the layout version in the home, after migrating a home that has an older layout."""
    noted = json.dumps({"version": LAYOUT}) + "\n"
    before = home.layout_file.read_text() if home.layout_file.exists() else None
    if before != noted:
        if before is not None:
            carry_over(home)
        write_atomically(home.layout_file, noted)


def carry_over(home: Home) -> None:
    """Record next to each checkpoint which lessons it has learned. Raises InputError if a night is unreadable."""
    lines = valid_lines(home.journal)
    made: dict[str, tuple[str, set[str]]] = {}  # from a checkpoint's digest to its parent's and the lessons taught
    for night, digests in _decided(home.nights):
        for model in ("distilled", "candidate"):
            if digests[model] not in (digests["champion"], digests["start"]):
                made[digests[model]] = digests["start"], _taught(night, model == "candidate", lines)
    for digest in made:
        lessons, parent = set[str](), digest
        while parent in made and parent != (before := made[parent][0]):
            lessons, parent = lessons | made[parent][1], before
        if (checkpoint := home.checkpoints / digest).is_dir():
            write_learned(checkpoint, lessons | learned(checkpoint))


def _decided(nights: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield the folder of each version 0.1 night that came to a decision, and the digests of its models by role."""
    for folder in sorted(nights.glob(NIGHTS)):
        decision = committed(folder / "decide")
        if decision is None or not (folder / "freeze_journal" / "taken.json").exists():
            continue
        content: dict[str, Any] = decision.read_json("decision.json")
        if (digests := content.get("digests")) is None:
            compared, target = content["comparisons"], content["target"]
            champion = compared["candidate"][target]["before_digest"]
            digests = {model: parts[target]["after_digest"] for model, parts in compared.items()}
            digests |= {"champion": champion, "start": champion}
        yield folder, digests


def _taught(night: Path, is_candidate: bool, lines: list[Line]) -> set[str]:
    """Return the lessons that a night taught its candidate or, if not `is_candidate`, its student before the rounds."""
    config = load_night(night / "config.yaml")
    read, kinds = _lines_read(night, lines), _kinds(night, is_candidate)
    later, by_day = _waiting(night), _by_day(night)
    taught = set[str]()
    for line in read:
        entry, kind = line.entry, line.entry.kind
        if entry.extra(LESSON) in by_day:
            taught |= line.rows.keys()
        elif ("feedback" if isinstance(entry, Conversation) else kind) not in kinds:
            continue
        elif isinstance(entry, Trace):
            if hashlib.sha256(json.dumps([entry.turns, entry.response]).encode()).hexdigest() not in later:
                taught |= line.rows.keys()
        elif not is_judge(entry, config.unseen_share):
            taught |= line.rows.keys()
    return taught


def _lines_read(night: Path, lines: list[Line]) -> list[Line]:
    """Return the journal lines in the byte ranges that a night read for the first time or replayed."""
    noted = json.loads((night / "freeze_journal" / "taken.json").read_text())
    spans = [(file, span) for taken in ("bytes", "replayed") for file, own in noted[taken].items() for span in own]
    contents = {line.file.name: line.file.read_bytes() for line in lines}
    numbers = {
        (file, number)
        for file, (start, end) in spans
        if (content := contents.get(file)) is not None
        for number in range(content.count(b"\n", 0, start) + 1, content.count(b"\n", 0, end - 1) + 2)
    }
    return [line for line in lines if (line.file.name, line.number) in numbers]


def _kinds(night: Path, is_candidate: bool) -> Set[str]:
    """Return the kinds of lines that a night taught before the rounds or, if `is_candidate`, in the whole night."""
    early, config = ended_early(night), load_night(night / "config.yaml")
    steps = config.steps[: early.steps if early else None]
    paths: dict[str, str] = {}
    for step in steps if is_candidate else takewhile(lambda step: not step.is_block, steps):
        verdict = committed(night / check_path(step.path) / "verdict")
        if verdict is not None and verdict.read_json("outcome.json")["outcome"] == "taken_back":
            continue
        if step.kind == "distill" and config.distill.steps:
            paths["trace"] = step.path
        elif step.kind == "lessons":
            paths |= {kind: f"lessons/{channel}" for kind, channel in CHANNELS.items()}
    return {kind for kind, path in paths.items() if committed(night / path)}


def _waiting(night: Path) -> Set[str]:
    """Return the digests of those worked solutions that no lesson of the night had room for."""
    later = [set(json.loads(file.read_text())) for file in night.glob("distill*/later.json")]
    return set.intersection(*later) if later else set()


def _by_day(night: Path) -> Set[str]:
    """Return the classroom lessons that the day copy had learned, if the night began with the day copy."""
    chosen, replayed = committed(night / "choose_start"), committed(night / "replay_day")
    if chosen is None or replayed is None or not chosen.read_json("start.json")["day"]:
        return set()
    return set(replayed.read_json("day.json").get("learnt", ()))
