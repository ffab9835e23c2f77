"""The champion's lineage: the nights that made it, each from the champion before, and what they taught."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from conf.load import load_night
from conf.schema import NightConfig
from conf.storage.journal import Conversation, Correction, Entry, Feedback, Preference, Trace, Words
from models.lessons.preference_data import is_held_out
from tasks.incidents import ended_early
from tasks.journal.spans import Spans, Taken, read_by
from tasks.plan import check_path
from tasks.stage import committed
from tasks.teaching.keys import LESSON

CHANNELS = {
    "preference": "picks",
    "correction": "corrections",
    "feedback": "feedback",
    "conversation": "feedback",
    "words": "words",
}
LATER = "later.json"  # of a lesson of worked solutions: those it had no room for, and those it held out


@dataclass(frozen=True)
class Taught:
    """What a night of the champion's lineage read of the journal, and what it taught of that.

    `kinds`: the kinds of lines taught. `unseen_share`: the share of the owner's conversations that it held out.
    `later`: digests (`solution_of`) of worked solutions that it did not teach. `by_day`: names of the classroom's
    lessons that the day copy with which it began had learnt.
    """

    read: Mapping[str, Spans]
    kinds: Set[str]
    unseen_share: float
    later: Set[str] = frozenset()
    by_day: Set[str] = frozenset()

    def has(self, entry: Entry, part: Taken) -> bool:
        """Return whether it taught an entry in a part of the journal, which it took itself or read again.

        A trace counts as taught even if its conversation's hash is held out, unless it is among `later`.
        """
        read = any(start <= part.start and part.end <= end for start, end in self.read.get(part.file, ()))
        if read and (entry.model_extra or {}).get(LESSON) in self.by_day:
            return True
        if not read or entry.kind not in self.kinds:
            return False
        if isinstance(entry, Trace):
            return solution_of(_messages(entry), entry.response) not in self.later
        return isinstance(entry, Words) or not is_held_out(_messages(entry), self.unseen_share)


def solution_of(messages: Sequence[Mapping[str, Any]], response: str) -> str:
    """Return a digest of a worked solution, independent of its source."""
    return hashlib.sha256(json.dumps([messages, response]).encode()).hexdigest()


def taught_by(champion: str, nights: Path) -> list[Taught]:
    """Return what each night of a champion's lineage taught, the newest first.

    Raises InputError if the configuration of one of them cannot be read.
    """
    taught = []
    for folder, is_candidate in line_of(champion, nights):
        config = load_night(folder / "config.yaml")
        lessons = _lessons(folder, config, is_candidate)
        later = _later(folder, lessons.get("trace", []))
        taught.append(Taught(read_by(folder), lessons.keys(), config.unseen_share, later, _by_day(folder)))
    return taught


def line_of(champion: str, nights: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the nights of a checkpoint's lineage (by its digest), the last one first, whatever their dates.

    Each comes with whether it made the checkpoint as its candidate, or else as the student before the rounds. Yields
    nothing for the original student.
    """
    made = {
        digests[model]: (nights / night, model == "candidate", digests["start"])
        for night, digests in examined(nights)
        for model in ("distilled", "candidate")
        if digests[model] not in (digests["champion"], digests["start"])
    }
    while champion in made:
        folder, is_candidate, champion = made.pop(champion)  # pop: a damaged lineage could be circular
        yield folder, is_candidate


def nights_with_smaller_holdout(champion: str, nights: Path, share: float) -> tuple[tuple[str, float], ...]:
    """Return the nights of a champion's lineage that held out less than `share` of conversations, with their shares.

    The champion may have learnt what is held out tonight from them. Raises InputError if the configuration of a night
    cannot be read.
    """
    lineage = (night for night, _ in line_of(champion, nights))
    shares = ((night.name, load_night(night / "config.yaml").unseen_share) for night in lineage)
    return tuple((night, held_out) for night, held_out in shares if held_out < share)


def examined(nights: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the nights that came to a decision, the oldest first, with the digests of their models.

    These are the `champion`, the `start` that the night began with, the student after its lessons (`distilled`), and
    the `candidate`.
    """
    for folder in sorted(nights.glob("????-??-??/decide")):
        if decision := committed(folder):
            content = decision.read_json("decision.json")
            yield folder.parent.name, content.get("digests") or _digests_before_0_2(content)


def _digests_before_0_2(decision: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of a decision of version 0.1, whose nights all began with the champion."""
    target, comparisons = decision["target"], decision["comparisons"]
    champion = comparisons["candidate"][target]["before_digest"]
    digests = {model: parts[target]["after_digest"] for model, parts in comparisons.items()}
    return digests | {"champion": champion, "start": champion}


def _messages(entry: Preference | Correction | Feedback | Conversation | Trace) -> list[dict[str, Any]]:
    return [message.model_dump() for message in entry.messages]


def _lessons(night: Path, config: NightConfig, is_candidate: bool) -> dict[str, list[str]]:
    """Return the kinds of journal lines that a night taught, each with the paths of its committed lessons.

    A night may end before a lesson, drop one that it had begun, or take it back, and a channel may be off.
    `is_candidate`: lessons after its rounds count too.
    """
    early = ended_early(night)
    steps = config.steps[: early.steps if early else None]
    lessons: dict[str, list[str]] = {}
    for step in steps if is_candidate else takewhile(lambda step: not step.is_block, steps):
        check = committed(night / check_path(step.path) / "verdict")
        if check is not None and check.read_json("outcome.json")["outcome"] == "taken_back":
            continue
        if step.kind == "distill" and config.distill.steps:
            lessons.setdefault("trace", []).append(step.path)
        elif step.kind == "lessons":
            lessons |= {kind: [f"lessons/{channel}"] for kind, channel in CHANNELS.items()}
    done = {kind: [path for path in paths if committed(night / path)] for kind, paths in lessons.items()}
    return {kind: paths for kind, paths in done.items() if paths}


def _by_day(night: Path) -> set[str]:
    """Return the lessons of the day copy that a night began with; none where it began with its champion."""
    chosen = committed(night / "choose_start")
    replayed = committed(night / "replay_day")
    if chosen is None or replayed is None or not chosen.read_json("start.json")["day"]:
        return set()
    return set(replayed.read_json("day.json")["learnt"])


def _later(night: Path, lessons: Sequence[str]) -> set[str]:
    """Return the worked solutions that none of a night's lessons taught, although they may be learnt."""
    waiting = [set(json.loads((night / path / LATER).read_text())) for path in lessons]
    return set.intersection(*waiting) if waiting else set()
