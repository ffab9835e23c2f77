"""What a night begins with: the champion, the last night's candidate that was ahead but unproven, or the day copy."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from conf.storage.durable import write_atomically
from conf.storage.home import SUMMARY
from flows.run.context import CHANGED, Night
from flows.run.history import last_finished
from models.hf.checkpoint import is_adapter, is_intact, learned, verify
from tasks.journal.read import lessons_in
from tasks.journal.tables import GENERATED

NOTE = "start.json"


@dataclass(frozen=True)
class Start:
    """The digest of what a night begins with, and how many `unpromoted` nights in a row made it (0: the champion)."""

    digest: str
    unpromoted: int = 0


def start_of(night: Night, champion: Path) -> tuple[Path, int]:
    """Return what `start_from: latest` or `champion` begins with, and how many unpromoted nights in a row made it.

    That is the candidate of the last finished night of this name, where its decision says so, the same champion still
    serves, it is whole, and it has learned nothing that you have taken out of the journal since. Once chosen, it stays
    when the night resumes. Raises DamagedCheckpointError where it changed.
    """
    note = night.folder / NOTE
    if not note.exists():
        write_atomically(note, json.dumps(asdict(_choose(night, champion))))
    start = Start(**json.loads(note.read_text()))
    if start.digest == champion.name:
        return champion, 0
    verify(checkpoint := night.home.checkpoints / start.digest, CHANGED)
    return checkpoint, start.unpromoted


def _choose(night: Night, champion: Path) -> Start:
    last = last_finished(night.home.nights, night.config.name, night.date)
    if night.config.start_from != "latest" or last is None:
        return Start(champion.name)
    summary = json.loads((last / SUMMARY).read_text())
    unpromoted, digests = summary.get("unpromoted", 0), summary["digests"]
    candidate = night.home.checkpoints / digests["candidate"]
    if not unpromoted or digests["champion"] != champion.name or not is_intact(candidate):
        return Start(champion.name)
    if _taken_back(night, champion, candidate):
        return Start(champion.name)
    if is_adapter(candidate) and night.config.merges:  # rounds begin with a whole model
        return Start(champion.name)
    return Start(candidate.name, unpromoted)


def _taken_back(night: Night, champion: Path, candidate: Path) -> set[str]:
    """Return the lessons that a candidate has learned, its champion not, and that are no longer in the journal."""
    own = {name for name in learned(candidate) - learned(champion) if not name.startswith(GENERATED)}
    return own - lessons_in(night.home.journal, night.date) if own else own
