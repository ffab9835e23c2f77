"""Which conversations are held out for judging, and so never taught."""

from collections.abc import Iterable

from conf.storage.journal import HELD_OUT, Entry, Trace, Words
from models.lessons.preference_data import is_held_out, opening
from tasks.journal.read import Line


def conversations_held_out(lines: Iterable[Line], known: frozenset[str], share: float) -> set[str]:
    """Return the openings of the conversations that are held out for judging, and so never taught."""
    return {start for start, held_out in decided(lines, known, share).items() if held_out}


def decided(lines: Iterable[Line], known: frozenset[str], share: float) -> dict[str, bool]:
    """Return whether each conversation in the journal is held out for judging, by its opening.

    A classroom line says whether its conversation is held out; for any other line, a hash decides (`is_held_out`). A
    conversation is not held out if the student has learned any of its lessons. Traces are ignored. If `share` is 0,
    nothing is decided.
    """
    said: dict[str, bool] = {}
    for line in lines if share else ():
        if (start := opening_of(line.entry)) is None or isinstance(line.entry, Trace):
            continue
        chosen = line.entry.extra(HELD_OUT)
        if not known.isdisjoint(line.rows):
            said[start] = False
        elif start not in said:
            said[start] = is_judge(line.entry, share) if chosen is None else bool(chosen)
    return said


def is_judge(entry: Entry, share: float) -> bool:
    """Return whether an entry's conversation is held out for judging, as decided by a hash of the conversation."""
    return not isinstance(entry, Words | Trace) and is_held_out(entry.turns, share)


def opening_of(entry: Entry) -> str | None:
    """Return the opening of an entry's conversation; None if the entry is a plain text."""
    return None if isinstance(entry, Words) else opening(entry.turns)
