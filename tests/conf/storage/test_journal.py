"""The journal's format: its published schema, what makes two lines the same lesson, and the lines as written."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from conf.storage.journal import KINDS, LONGEST_LINE, Words, entry_of, lesson_of, line_of, parse_line, schema

DOCS = Path(__file__).parents[3] / "docs"
ASKED = [{"role": "user", "content": "2 + 2?"}]
PICK: dict[str, Any] = {
    "kind": "preference",
    "messages": ASKED,
    "responses": ["3", "4"],
    "chosen": 1,
    "policy": "cafe42",
    "at": "2026-11-20",
}
VALIDATOR = Draft202012Validator(json.loads(schema()))


def test_the_published_schema_is_the_models_own() -> None:
    published = (DOCS / "journal.schema.json").read_text()
    assert published == schema(), "run: nightschool journal schema > docs/journal.schema.json"


def test_the_schema_is_one_and_takes_what_the_models_take() -> None:
    Draft202012Validator.check_schema(json.loads(schema()))
    VALIDATOR.validate({"version": 1, **PICK})
    bad = [{"chosen": -1}, {"responses": ["4"]}, {"responses": ["4", " "]}, {"kind": "gossip"}, {"version": 2}]
    assert all(not VALIDATOR.is_valid({"version": 1, **PICK, **change}) for change in bad)


def test_the_examples_of_the_page_are_lines_of_every_kind() -> None:
    blocks = re.findall(r"```json\n(.*?)```", (DOCS / "journal.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert {parse_line(line.encode()).kind for line in lines} == set(KINDS)
    for line in lines:
        VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"at": "2026-11-21T08:00:00Z"}, True),
        ({"client": "phone"}, True),
        ({"imported_from": "picks.jsonl"}, True),
        ({"chosen": 0}, False),
        ({"responses": ["4", "3"]}, False),
        ({"policy": "beef43"}, False),
        ({"messages": [{"role": "system", "content": ""}, *ASKED]}, False),
    ],
)
def test_what_makes_two_lines_the_same_lesson(change: dict[str, Any], same: bool) -> None:
    assert (lesson_of(entry_of(PICK)) == lesson_of(entry_of(PICK | change))) == same


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip()))
def test_any_text_comes_back_from_its_line(text: str) -> None:
    entry = entry_of({"kind": "words", "text": text})
    line = line_of(entry)
    assert line.count(b"\n") == 1
    assert parse_line(line[:-1]) == entry
    assert isinstance(entry, Words)
    assert entry.text == text


def test_keys_that_this_version_does_not_know_are_kept() -> None:
    assert json.loads(line_of(entry_of(PICK | {"client": {"name": "phone"}})))["client"] == {"name": "phone"}


def test_version_and_time_may_be_left_out_by_a_program() -> None:
    entry = entry_of({"kind": "words", "text": "owl"})
    now = datetime.datetime.now().astimezone()
    said = datetime.datetime.fromisoformat(entry.at)
    assert entry.version == 1
    assert datetime.timedelta(0) <= now - said < datetime.timedelta(minutes=1)


@pytest.mark.parametrize("days", [0, 1, 2])
def test_a_program_is_told_of_a_time_in_the_future(days: int) -> None:
    at = (datetime.date.today() + datetime.timedelta(days=days)).isoformat()
    if days < 2:
        assert entry_of({"kind": "words", "text": "owl", "at": at}).at == at
    else:
        with pytest.raises(ValueError, match=f"at: {at} is in the future, more than a day after"):
            entry_of({"kind": "words", "text": "owl", "at": at})


def test_a_line_may_be_as_long_as_it_says_and_not_longer() -> None:
    room = LONGEST_LINE - len(line_of(entry_of({"kind": "words", "text": "x"})))
    entry = entry_of({"kind": "words", "text": "x" * room})
    assert parse_line(line_of(entry)[:-1]) == entry
    assert isinstance(entry, Words)
    with pytest.raises(ValueError, match="bytes; at most 1000000 are allowed"):
        line_of(entry.model_copy(update={"text": "x" * LONGEST_LINE}))
