"""The champion's line: the nights that made it, each from the champion before, and what they taught of the journal."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from conf.load import config_of
from conf.schema import NightConfig
from conf.storage.journal import Correction, Entry, Feedback, Preference, Trace, Words
from models.lessons.preference_data import is_held_out
from tasks.incidents import ended_early
from tasks.journal.spans import Spans, Taken, read_by
from tasks.stage import committed

CHANNELS = {"preference": "picks", "correction": "corrections", "feedback": "feedback", "words": "words"}
KINDS = {*CHANNELS, "trace"}  # of journal lines
LATER = "later.json"  # of a lesson of worked solutions: those that it had no room for, and those it held out


@dataclass(frozen=True)
class Taught:
    """A night of the champion's line: what it read of the journal, the kinds of lines that it taught, and the share of
    the owner's conversations that it held out.

    `later`: the worked solutions that it did not teach, by `solution_of`.
    """

    read: Mapping[str, Spans]
    kinds: Set[str]
    unseen_share: float
    later: Set[str] = frozenset()

    def has(self, entry: Entry, part: Taken) -> bool:
        """Whether it taught a line of a part of the journal: that it took itself, or had by replay.

        A trace is a lesson whatever its conversation's hash, as long as no pick has the same one.
        """
        read = any(start <= part.start and part.end <= end for start, end in self.read.get(part.file, ()))
        if not read or entry.kind not in self.kinds:
            return False
        if isinstance(entry, Trace):
            return solution_of(_messages(entry), entry.response) not in self.later
        return isinstance(entry, Words) or not is_held_out(_messages(entry), self.unseen_share)


def solution_of(messages: Sequence[Mapping[str, Any]], response: str) -> str:
    """A digest of a worked solution, wherever it stands."""
    return hashlib.sha256(json.dumps([messages, response]).encode()).hexdigest()


def taught_by(champion: str, nights: Path) -> list[Taught]:
    """The nights of a champion's line, and what each of them taught, the newest first."""
    found = []
    for folder, whole in line_of(champion, nights):
        places, share = _taught(folder, whole), _unseen_share(config_of(folder))
        found.append(Taught(read_by(folder), places.keys(), share, _later(folder, places.get("trace", []))))
    return found


def line_of(champion: str, nights: Path) -> Iterator[tuple[Path, bool]]:
    """The folders of the nights that made a checkpoint (its digest), and those it was made from, whatever their dates.

    The last one comes first, each with whether what it made was its candidate, or else the student before the rounds.
    None where no night of this home made it: it is the student as it came.
    """
    made = {
        sat[who]: (nights / night, who == "candidate", sat["champion"])
        for night, sat in examined(nights)
        for who in ("distilled", "candidate")
        if sat[who] != sat["champion"]
    }
    while champion in made:
        folder, whole, champion = made.pop(champion)  # once: none can be made from itself
        yield folder, whole


def looser(champion: str, nights: Path, share: float) -> tuple[tuple[str, float], ...]:
    """The nights of a champion's line that kept fewer conversations from its lessons than a share, each with its own.

    So what judges by that share tonight, and was there by then, may have been a lesson. A night that another version
    of the program wrote kept none, as far as is known.
    """
    shares = ((night.name, _unseen_share(config_of(night))) for night, _ in line_of(champion, nights))
    return tuple((night, own) for night, own in shares if own < share)


def examined(nights: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The nights that came to a decision, the oldest first, each with the digests of those who sat."""
    for folder in sorted(nights.glob("????-??-??/decide")):
        if decision := committed(folder):
            found = decision.read_json("decision.json")
            target, compared = found["target"], found["comparisons"]
            sat = {who: part[target]["after_digest"] for who, part in compared.items()}
            yield folder.parent.name, sat | {"champion": compared["candidate"][target]["before_digest"]}


def _unseen_share(config: NightConfig | None) -> float:
    return config.unseen_share if config else 0.0


def _messages(entry: Preference | Correction | Feedback | Trace) -> list[dict[str, Any]]:
    return [message.model_dump() for message in entry.messages]


def _taught(night: Path, whole: bool) -> dict[str, list[str]]:
    """The kinds of journal lines that a night taught, all where another version of the program wrote it, and where.

    A night may end before a lesson, or in the midst of one, which is then dropped, with the channels that were done;
    and a channel may be off. `whole`: the lessons after its rounds count, too.
    """
    config, early = config_of(night), ended_early(night)
    if config is None:
        return {kind: [] for kind in KINDS}
    steps = config.steps[: early.steps if early else None]
    places: dict[str, list[str]] = {}
    for step in steps if whole else takewhile(lambda step: not step.is_block, steps):
        if step.kind == "distill" and config.distill.steps:
            places.setdefault("trace", []).append(step.place)
        elif step.kind == "lessons":
            places |= {kind: [f"lessons/{channel}"] for kind, channel in CHANNELS.items()}
    done = {kind: [place for place in found if committed(night / place)] for kind, found in places.items()}
    return {kind: found for kind, found in done.items() if found}


def _later(night: Path, places: Sequence[str]) -> set[str]:
    """What none of a night's lessons of worked solutions taught, although it may be learnt."""
    files = [night / place / LATER for place in places]
    waiting = [set(json.loads(file.read_text())) for file in files if file.exists()]  # older nights have none
    return set.intersection(*waiting) if waiting and len(waiting) == len(files) else set()
