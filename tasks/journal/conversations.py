"""Recorded conversations: lines of the journal that keep what was said, and teach nothing by themselves.

Each answer adds a line with the whole conversation so far; the latest line with a name is the conversation's state.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.journal import CONVERSATION, UNFINISHED, entry_of, parse_line
from conf.storage.journal_file import Written, append, retract
from models.hf.checkpoint import learned
from tasks.journal.read import valid_lines

ANSWERS = "answers"  # of a recorded line: all answers to the last question, if there were several
MARK = f'"{CONVERSATION}":"'.encode()  # in every line that this module has to read

Turn = dict[str, str]  # role and content
_CHANGING = threading.RLock()  # each change records a conversation as it stands, with something changed


@dataclass(frozen=True)
class Record:
    """A conversation as recorded last. `policy`: the digest of the checkpoint that wrote the last answer, or TODAY.

    `answers`: the answers to the last question, of which the first is the last turn. `unfinished`: the texts of the
    answers that were stopped or cut off.
    """

    name: str
    at: str
    turns: list[Turn]
    policy: str
    answers: tuple[str, ...]
    unfinished: tuple[str, ...]


def record(journal: Path, name: str, turns: list[Turn], policy: str, **keys: Any) -> Written:
    """Write a conversation, which ends with an answer, to the journal. Raises InputError if that fails."""
    fields = {"kind": "conversation", "messages": turns, "policy": policy, CONVERSATION: name}
    return append(journal, [entry_of(fields | {key: value for key, value in keys.items() if value not in ((), [])})])


def go_on(journal: Path, name: str, exchange: list[Turn], policy: str, unfinished: list[str], **keys: Any) -> None:
    """Record a conversation with a further exchange, unless it was deleted meanwhile. Raises InputError.

    `unfinished`: the texts of answers in the exchange that were stopped or cut off.
    """
    with _CHANGING:
        if (found := conversation(journal, name)) is not None:
            cut = [*found.unfinished, *unfinished]
            record(journal, name, [*found.turns, *exchange], policy, unfinished=cut, **keys)


def answer_index(turns: list[Turn], number: int) -> int | None:
    """Return the index of a conversation's answer by its number, from 1; None if it has no such answer."""
    answers = [index for index, turn in enumerate(turns) if turn["role"] == "assistant"]
    return answers[number - 1] if 1 <= number <= len(answers) else None


def replace_answer(journal: Path, name: str, number: int, answer: str, finished: bool = True) -> None:
    """Record the conversation with another text as its answer `number`, from 1. Raises InputError."""
    with _CHANGING:
        found = conversation(journal, name)
        if found is not None and (at := answer_index(found.turns, number)) is not None:
            _replace(journal, found, at, answer, finished)


def restore_answer(journal: Path, name: str, question: str, answer: str) -> None:
    """Record the conversation with the text that `answer`, to `question`, replaced, if it still stands there.

    Of several such answers, the last is restored. Raises InputError.
    """
    with _CHANGING:
        records = [found for found in _records(journal) if found.name == name]
        for at in reversed(range(1, len(records[-1].turns) if records else 0)):
            having = [found for found in records if at < len(found.turns)]
            texts = [found.turns[at]["content"] for found in having]
            asked = having[-1].turns[at - 1]["content"] == question
            if asked and texts[-1] == answer and (first := texts.index(answer)):
                before = texts[first - 1]
                _replace(journal, records[-1], at, before, before not in having[first - 1].unfinished)
                return


def _replace(journal: Path, found: Record, at: int, answer: str, finished: bool) -> None:
    turns = [*found.turns[:at], {"role": "assistant", "content": answer}, *found.turns[at + 1 :]]
    cut = [*found.unfinished, *([] if finished else [answer])]
    record(journal, found.name, turns, found.policy, unfinished=cut)


def conversations(journal: Path) -> list[Record]:
    """Return the recorded conversations, latest first, without those that are the beginning of another one."""
    kept, beginnings = list[Record](), set[str]()
    for found in reversed(_latest(journal).values()):
        if json.dumps(found.turns) not in beginnings:
            kept.append(found)
        beginnings.update(json.dumps(found.turns[:end]) for end in range(1, len(found.turns) + 1))
    return kept


def conversation(journal: Path, name: str) -> Record | None:
    """Return the conversation with this name as it was recorded last, or None if there is none."""
    return _latest(journal).get(name)


def with_beginnings(journal: Path, name: str) -> set[str]:
    """Return the name of a conversation and of those that are its beginning: a program sends all turns each time."""
    latest = _latest(journal)
    turns = latest[name].turns if name in latest else []
    return {name, *(each.name for each in latest.values() if each.turns == turns[: len(each.turns)])}


def learned_by(journal: Path, name: str, checkpoints: Path) -> list[str]:
    """Return the digests of the checkpoints that have learned from a conversation's lessons, oldest first."""
    names = with_beginnings(journal, name)
    about = (line for line in valid_lines(journal) if line.entry.extra(CONVERSATION) in names)
    lessons = {lesson for line in about for lesson in line.rows}
    found = (folder for folder in checkpoints.glob("*") if not learned(folder).isdisjoint(lessons))
    return [folder.name for folder in sorted(found, key=lambda folder: folder.stat().st_mtime)]


def forget(journal: Path, name: str) -> int:
    """Blank all lines that record a conversation or its beginnings, or teach from them. Return their number."""
    names = with_beginnings(journal, name)
    gone = [written for written, fields in _lines(journal) if fields.get(CONVERSATION) in names]
    for written in gone:
        retract(written)
    return len(gone)


def _latest(journal: Path) -> dict[str, Record]:
    """Return each conversation as recorded last, by its name; the one that was recorded last is at the end."""
    latest = dict[str, Record]()
    for found in _records(journal):
        latest.pop(found.name, None)
        latest[found.name] = found
    return latest


def _records(journal: Path) -> Iterator[Record]:
    """Yield each state in which a conversation was recorded, oldest first."""
    for _, fields in _lines(journal):
        if fields.get("kind") != "conversation" or fields.get("rewards") is not None:
            continue
        if not isinstance(fields.get(CONVERSATION), str):
            continue
        try:
            turns = parse_line(json.dumps(fields).encode()).turns
        except ValueError:  # a night refuses it, too
            continue
        yield Record(
            name=fields[CONVERSATION],
            at=fields["at"],
            turns=turns,
            policy=fields.get("policy", ""),
            answers=_texts(fields.get(ANSWERS)) or (turns[-1]["content"],),
            unfinished=_texts(fields.get(UNFINISHED)),
        )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _lines(journal: Path) -> Iterator[tuple[Written, dict[str, Any]]]:
    """Yield the journal's lines about conversations. Other lines are not parsed: an import may have added many."""
    for file in sorted(journal.glob("*.jsonl")):
        for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
            if MARK in line:
                with suppress(ValueError):  # a torn line
                    if isinstance(fields := json.loads(line), dict):
                        yield Written(file, number), fields
