"""Recorded conversations: what is listed, what the night learns from them, and what is left once one is forgotten."""

import datetime
import json
from pathlib import Path

from conf.storage.journal import CONVERSATION, entry_of
from conf.storage.journal_file import append, read_file
from models.hf.checkpoint import write_learned
from tasks.journal.conversations import conversation, conversations, forget, learned_by, record
from tasks.journal.read import lessons_in

TODAY = str(datetime.date.today())
SAID = [{"role": "user", "content": 'Say "conversation":"hoot"'}, {"role": "assistant", "content": "Hoot."}]
OTHER = [{"role": "user", "content": "Say moo"}, {"role": "assistant", "content": "Moo."}]
LONGER = [*SAID, {"role": "user", "content": "Louder!"}, {"role": "assistant", "content": "HOOT."}]


def praise(journal: Path, name: str) -> None:
    fields = {"kind": "feedback", "messages": SAID[:1], "response": "Hoot.", "value": 1, CONVERSATION: name}
    append(journal, [entry_of(fields)])


def test_the_latest_line_is_the_conversation_and_nothing_is_learned_from_it(tmp_path: Path) -> None:
    record(tmp_path, "a", SAID, "cafe")
    untimed = {"version": 1, "kind": "conversation", CONVERSATION: "a", "messages": SAID}  # a night refuses it
    odd = untimed | {"at": TODAY, CONVERSATION: "b", "unfinished": 5}
    lines = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in (untimed, odd))
    (tmp_path / f"{TODAY}.jsonl").open("a").write(lines)
    record(tmp_path, "b", SAID, "cafe", answers=["Hoot.", "Hu."], unfinished=[])
    record(tmp_path, "a", LONGER, "beef", unfinished=["HOOT."])
    for broken in (
        b'{"kind":"conversation","conversation":"a","messages":[{"role":"user"}]}\n',
        b'{"conversation":"torn',
    ):
        (tmp_path / f"{TODAY}.jsonl").open("ab").write(broken)
    (found,) = conversations(tmp_path)  # `b` is how `a` begins
    assert (found.name, found.turns, found.policy, found.unfinished) == ("a", LONGER, "beef", ("HOOT.",))
    assert found == conversation(tmp_path, "a")
    assert (b := conversation(tmp_path, "b")) is not None
    assert b.answers == ("Hoot.", "Hu.")
    assert conversation(tmp_path, "c") is None
    assert lessons_in(tmp_path, TODAY) == set()


def test_to_forget_a_conversation_takes_its_lessons_too_and_names_who_has_learned_them(tmp_path: Path) -> None:
    journal, checkpoints = tmp_path / "journal", tmp_path / "checkpoints"
    for name in ("a", "b"):
        record(journal, name, OTHER if name == "b" else LONGER, "cafe")
        praise(journal, name)
    record(journal, "a so far", SAID[:2], "cafe")  # what a program had sent before: `a` begins like it
    (of_a, of_b) = sorted(lessons_in(journal, TODAY), key=len)  # the same feedback twice: the second has a number
    for number, lessons in enumerate([{of_a}, {of_a, of_b}, {of_b}]):
        (checkpoints / str(number)).mkdir(parents=True)
        write_learned(checkpoints / str(number), lessons)
    assert learned_by(journal, "a", checkpoints) == ["0", "1"]
    assert forget(journal, "a") == 3
    (file,) = journal.glob("*")
    assert [entry.model_extra[CONVERSATION] for _, entry in read_file(file)[0]] == ["b", "b"]
    assert [found.name for found in conversations(journal)] == ["b"]


def test_to_forget_a_conversation_keeps_another_one_that_began_in_the_same_way(tmp_path: Path) -> None:
    record(tmp_path, "a", LONGER, "cafe")
    record(tmp_path, "b", SAID, "cafe")
    record(tmp_path, "b", [*SAID, *OTHER], "cafe")
    assert forget(tmp_path, "a") == 1
    assert [found.name for found in conversations(tmp_path)] == ["b"]
