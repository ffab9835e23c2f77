"""From the freeze's tables to picks: what counts as a choice, corrections as pairs, ages, and the split by prompt."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.storage.journal import entry_of
from models.hf.loading import load_tokenizer
from models.lessons.preference_data import Pick
from tasks.journal.read import table_row
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES
from tasks.reward_model import preferences
from tasks.reward_model.preferences import AT_ONCE, LONGEST, MOST, Choice, DayPicks, choices, day_picks
from tasks.tables import read_table
from tasks.training.examples import ExampleReader
from tests.tasks.doubles.student import END, write_student
from tests.tasks.doubles.tables import write_stage

DATE = "2026-11-20"
ORIGIN = {"day": DATE, "lesson": "one", "held_out": False}


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def preference(text: str, responses: list[str], chosen: int) -> dict[str, Any]:
    messages, shown = json.dumps(asked(text)), json.dumps(responses)
    return {"messages": messages, "responses": shown, "chosen": chosen, "policy": "cafe42", **ORIGIN}


def split(student: Path, found: list[Choice]) -> DayPicks:
    return day_picks(found, DATE, load_tokenizer(student), StudentConfig())


def all_of(picks: DayPicks) -> list[Pick]:
    return [*picks.fitted, *picks.held_out]


def test_a_pick_and_a_correction_in_full(tmp_path: Path, student: Path) -> None:
    correction = {"messages": json.dumps(asked("And?")), "response": "No.", "correction": "Yes.", **ORIGIN}
    day = write_stage(
        tmp_path / "freeze_journal",
        {
            "preferences": (PREFERENCES, [preference("Why?", ["a", "bc", "a"], 2)]),
            "corrections": (CORRECTIONS, [correction]),
        },
    )
    pick, pair = choices(day.folder)
    assert pick == Choice(asked("Why?"), ["a", "bc"], 0, DATE, "one")  # the one picked was shown twice
    assert pair == Choice(asked("And?"), ["No.", "Yes."], 1, DATE, "one", corrected=True)
    tokenizer: Any = load_tokenizer(student)
    found = {len(one.answers[0]): one for one in all_of(split(student, [pick, pair]))}
    assert tokenizer.decode(found[2].prompt) == "User: Why?\nAssistant:"
    assert found[2].answers == ((*tokenizer.encode("a"), END), (*tokenizer.encode("bc"), END))
    assert [tokenizer.decode(answer[:-1]) for answer in found[4].answers] == ["No.", "Yes."]
    assert (found[4].chosen, found[4].weight) == (1, 1.0)


def test_an_answer_that_was_cut_off_gets_no_end_token_by_night_either(tmp_path: Path, student: Path) -> None:
    cut = {"unfinished": ["bc"], "messages": asked("Why?")}
    pick = entry_of({"kind": "preference", "responses": ["a", "bc"], "chosen": 1, "policy": "x", **cut})
    rated = entry_of({"kind": "feedback", "response": "bc", "value": 1.0, **cut})
    turns = [*asked("Why?"), {"role": "assistant", "content": "bc"}]
    talk: Any = entry_of({"kind": "conversation", "messages": turns, "rewards": [1.0], "unfinished": ["bc"]})
    rows = [table_row(entry) | ORIGIN for entry in (rated, *talk.ratings)]
    tables = {
        "preferences": (PREFERENCES, [table_row(pick) | ORIGIN]),
        "corrections": (CORRECTIONS, []),
        "feedback": (FEEDBACK, rows),
    }
    day = write_stage(tmp_path / "freeze_journal", tables)
    tokenizer: Any = load_tokenizer(student)
    whole, part = (*tokenizer.encode("a"), END), tuple(tokenizer.encode("bc"))
    (fitted,) = all_of(split(student, [*choices(day.folder)]))
    assert fitted.answers == (whole, part)
    reader = ExampleReader(student, StudentConfig(), (), 100)
    (taught,) = reader.picks(read_table(day.folder / "preferences.parquet", PREFERENCES))
    assert taught.answers == (part, whole)
    ratings = reader.feedback(read_table(day.folder / "feedback.parquet", FEEDBACK))
    assert [one.answer for one in ratings] == [[*part], [*part]]


def test_a_pick_that_does_not_fit_is_left_out(student: Path) -> None:
    whole = LONGEST - len("User: Why?\nAssistant:") - 1
    assert len(split(student, [Choice(asked("Why?"), ["x", "y" * whole], 0, DATE)])) == 1
    longer = Choice(asked("Why?"), ["x", "y" * (whole + 1)], 0, DATE)
    assert +split(student, [longer]).left_out == {"too_long": 1}


def test_a_pick_of_more_answers_than_memory_holds_is_left_out(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a megabyte may have hundreds of long answers, and all go through the model together."""
    length = len("User: Why?\nAssistant:") + 51
    monkeypatch.setattr(preferences, "LONGEST", length)
    for count, fits in ((AT_ONCE, True), (AT_ONCE * length // 51 + 1, False)):
        choice = Choice(asked("Why?"), [f"{n:050d}" for n in range(count)], 0, DATE)
        found = split(student, [choice])
        assert (len(found), found.left_out["too_long"]) == (fits, not fits)


def test_a_conversation_that_the_template_refuses_is_left_out(tmp_path: Path) -> None:
    strict = write_student(tmp_path / "strict")
    load_tokenizer(strict).chat_template = "{{ raise_exception('speakers must take turns') }}"  # it is cached
    found = split(strict, [Choice(asked("Why?"), ["a", "b"], 0, DATE)])
    assert (len(found), found.left_out["refused"]) == (0, 1)


@pytest.mark.parametrize(
    ("day", "weight"), [("2026-11-20", 1.0), ("2026-11-06", 0.5), ("2026-10-23", 0.25), ("2026-12-01", 1)]
)
def test_older_picks_weigh_less(student: Path, day: str, weight: float) -> None:
    (pick,) = all_of(split(student, [Choice(asked("Why?"), ["a", "b"], 0, day)]))
    assert pick.weight == pytest.approx(weight)


def test_a_correction_is_fitted_and_judges_nothing(student: Path) -> None:
    """Style tells who wrote an answer; a model that learns no more must not serve."""
    shown = [Choice(asked(f"Why {n}?"), ["a", "b"], 1, DATE, str(n), held_out=n < 10) for n in range(40)]
    picks = split(student, shown)
    assert (len(picks.held_out), picks.held_out_choices) == (10, shown[:10])
    found = split(student, [replace(choice, corrected=True) for choice in shown])
    assert (found.fitted, found.held_out, found.held_out_choices) == (picks.fitted, [], [])
    assert found.left_out["correction"] == 10
    assert found.lessons == picks.lessons == [str(n) for n in range(10, 40)]


def test_only_the_newest_picks_are_fitted(student: Path) -> None:
    """As many as a night has time for."""
    days = ("2026-10-01", DATE, "2026-11-19", "2026-11-01")
    found = split(student, [Choice(asked(f"Why {n}?"), ["a", "b"], 0, days[n % 4], str(n)) for n in range(300)])
    kept = [n for n in range(300) if n % 4 in (1, 2)]  # of tonight and of last night, and the last of those before
    kept += [n for n in range(300) if n % 4 == 3][-(MOST - len(kept)) :]
    tokenizer: Any = load_tokenizer(student)
    assert [tokenizer.decode(pick.prompt) for pick in found.fitted] == [
        f"User: Why {n}?\nAssistant:" for n in sorted(kept)
    ]
    assert found.lessons == [str(n) for n in sorted(kept)]
    assert (len(found.fitted), found.left_out["older"]) == (MOST, 300 - MOST)
