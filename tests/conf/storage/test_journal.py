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

from conf.storage.journal import KINDS, LONGEST_LINE, entry_of, lesson_digest, line_of, parse_line, schema
from tests.refusal import refusal

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
TALK = [*ASKED, {"role": "assistant", "content": "5"}, *ASKED, {"role": "assistant", "content": "4"}]
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
    assert (lesson_digest(entry_of(PICK)) == lesson_digest(entry_of(PICK | change))) == same


@pytest.mark.parametrize(
    ("rewards", "values"),
    [([None, 1], [0.9, 1.0]), ([-0.5, 0.5], [-0.05, 0.5]), ([1, None], [1.0, 0.0]), ([1, 1], [1.0, 1.0])],
)
def test_a_reward_credits_the_earlier_turns_too(rewards: list[float | None], values: list[float]) -> None:
    entry = entry_of({"kind": "conversation", "messages": TALK, "rewards": rewards})
    assert parse_line(line_of(entry)[:-1]) == entry
    assert entry.values == pytest.approx(values)
    assert [(len(rating.messages), rating.response) for rating in entry.ratings] == [(1, "5"), (3, "4")]
    assert [rating.value for rating in entry.ratings] == entry.values


def test_a_recorded_conversation_rates_nothing() -> None:
    entry = entry_of({"kind": "conversation", "messages": TALK, "policy": "cafe"})
    assert (entry.values, entry.ratings) == ([0.0, 0.0], [])


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip()))
def test_any_text_comes_back_from_its_line(text: str) -> None:
    entry = entry_of({"kind": "words", "text": text})
    line = line_of(entry)
    assert line.count(b"\n") == 1
    assert parse_line(line[:-1]) == entry
    assert entry.text == text


def test_keys_that_this_version_does_not_know_are_kept() -> None:
    assert json.loads(line_of(entry_of(PICK | {"client": {"name": "phone"}})))["client"] == {"name": "phone"}


def test_version_and_time_may_be_left_out_by_a_program() -> None:
    entry = entry_of({"kind": "words", "text": "owl"})
    written = datetime.datetime.fromisoformat(entry.at)
    assert entry.version == 1
    assert datetime.timedelta(0) <= datetime.datetime.now().astimezone() - written < datetime.timedelta(minutes=1)
    with pytest.raises(ValueError, match="is in the future, more than a day after"):
        entry_of({"kind": "words", "text": "owl", "at": str(datetime.date.today() + datetime.timedelta(days=2))})


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"version": 1, "kind": kind, "at": "2026-11-20", **fields}).encode()


def pick(**change: Any) -> bytes:
    return line(**PICK | change)


BAD = {
    "no JSON": (b'{"kind": "words", "text": x}', "not valid JSON at column 27"),
    "no object": (b"[1, 2]", "not a JSON object"),
    "nested": (b'{"a":' * 100_000, "not valid JSON: nested too deep"),
    "no text at all": (b'{"text": "\xff\xfe"}', "not UTF-8 (byte 10)"),
    "no kind": (b'{"version": 1}', "kind is missing; use preference, correction, feedback, conversation, words, trace"),
    "unknown kind": (
        line("wrds"),
        "unknown kind 'wrds'; use preference, correction, feedback, conversation, words, trace",
    ),
    "no key": (line("words"), "words.text: is missing"),
    "empty": (line("words", text=""), "words.text: is blank"),
    "blank": (line("words", text=" \n\u2003"), "words.text: is blank"),
    "half a letter": (line("words", text="\ud800"), "half of a surrogate pair"),
    "half an emoji": (line("feedback", messages=ASKED, response="a\ud83d", value=1), "half of a surrogate pair"),
    "index too high": (pick(chosen=2), "preference: chosen is 2, but there are 2 responses (0 is the first)"),
    "a blank answer": (pick(responses=["\t", "a"]), "preference.responses.0: is blank"),
    "all the same": (pick(responses=["a", "a"]), "preference: all 2 responses are the same: a pick among them says"),
    "no question": (
        pick(messages=[*ASKED, {"role": "assistant", "content": "4"}]),
        "preference: messages: the last turn is the assistant's, not the user's",
    ),
    "no value": (line("feedback", messages=ASKED, response="a", value=float("nan")), "feedback.value: Input should be"),
    "nothing corrected": (
        line("correction", messages=ASKED, response="a", correction="a"),
        "correction: correction and response are the same",
    ),
    "an open conversation": (
        line("conversation", messages=[*TALK, *ASKED], rewards=[1, None]),
        "conversation: messages: the last turn is the user's, not the assistant's",
    ),
    "a turn without a reward": (
        line("conversation", messages=TALK, rewards=[1]),
        "conversation: rewards: 1, but the assistant has 2 turns",
    ),
    "no reward": (line("conversation", messages=TALK, rewards=[None, 0]), "conversation: rewards: none but 0, which"),
    "no time": (line("words", text="x", at="now"), "words.at: 'now' is not a date or time in ISO 8601, such as 2026-"),
    "too long": (line("words", text="x" * LONGEST_LINE), "1000063 bytes; at most 1000000 are allowed"),
}


@pytest.mark.parametrize(("bad", "reason"), BAD.values(), ids=BAD)
def test_a_bad_line_is_refused_in_plain_words(bad: bytes, reason: str) -> None:
    assert refusal(parse_line, bad, kind=ValueError).startswith(reason)


def test_a_line_may_be_as_long_as_the_limit() -> None:
    room = LONGEST_LINE - len(line_of(entry_of({"kind": "words", "text": "x"})))
    entry = entry_of({"kind": "words", "text": "x" * room})
    assert parse_line(line_of(entry)[:-1]) == entry
