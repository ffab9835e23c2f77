"""From the freeze's tables to picks: what counts as a choice, corrections as pairs, ages, and the split by prompt."""

from pathlib import Path
from typing import Any

from conf.schema import StudentConfig
from conf.storage.journal import entry_of
from models.hf.loading import load_tokenizer
from tasks.journal.read import table_row
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES
from tasks.reward_model.preferences import AT_ONCE, LONGEST, MOST, TABLES, DayPicks, day_picks
from tasks.tables import read_table
from tasks.training.examples import ExampleReader
from tests.tasks.doubles.student import END
from tests.tasks.doubles.tables import DAY as DATE
from tests.tasks.doubles.tables import correction, lesson_table, messages, preference, write_stage


def split(student: Path, picks: list[dict[str, Any]], max_tokens: int = LONGEST) -> DayPicks:
    reader = ExampleReader(student, StudentConfig(), (), max_tokens)
    return day_picks({"preferences": lesson_table(*picks)}, DATE, reader)


def split_day(student: Path, day: Path) -> DayPicks:
    tables = {name: read_table(day / f"{name}.parquet", schema) for name, schema in TABLES.items()}
    return day_picks(tables, DATE, ExampleReader(student, StudentConfig(), (), LONGEST))


def test_a_pick_and_a_correction_in_full(tmp_path: Path, student: Path) -> None:
    shown_twice = preference("Why?", ["a", "bc", "a"], 2)
    tables = {
        "preferences": (PREFERENCES, [shown_twice, preference("Who?", ["d", "e", "d"], 2, held_out=True)]),
        "corrections": (CORRECTIONS, [correction("And?", "No.", "Yes.")]),
    }
    found = split_day(student, write_stage(tmp_path / "freeze_journal", tables).folder)
    pick, pair = found.fitted
    tokenizer: Any = load_tokenizer(student)
    assert tokenizer.decode(pick.prompt) == "User: Why?\nAssistant:"
    assert pick.answers == ((*tokenizer.encode("a"), END), (*tokenizer.encode("bc"), END))
    assert pick.chosen == 0
    assert [tokenizer.decode(answer[:-1]) for answer in pair.answers] == ["No.", "Yes."]
    assert (pair.chosen, pair.weight) == (1, 1.0)
    asks = {"messages": messages("Who?"), "responses": '["d", "e"]', "chosen": 0}
    assert found.held_out_rows == [asks | {"generated": False, "unfinished": None}]


def test_an_answer_that_was_cut_off_gets_no_end_token_by_night_either(tmp_path: Path, student: Path) -> None:
    turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "bc"}]
    cut = {"unfinished": ["bc"], "messages": turns[:1]}
    pick = entry_of({"kind": "preference", "responses": ["a", "bc"], "chosen": 1, "policy": "x", **cut})
    rated = entry_of({"kind": "feedback", "response": "bc", "value": 1.0, **cut})
    talk: Any = entry_of({"kind": "conversation", "messages": turns, "rewards": [1.0], "unfinished": ["bc"]})
    tables = {
        "preferences": (PREFERENCES, [table_row(pick)]),
        "corrections": (CORRECTIONS, []),
        "feedback": (FEEDBACK, map(table_row, (rated, *talk.ratings))),
    }
    day = write_stage(tmp_path / "freeze_journal", tables)
    tokenizer: Any = load_tokenizer(student)
    whole, part = (*tokenizer.encode("a"), END), tuple(tokenizer.encode("bc"))
    (fitted,) = split_day(student, day.folder).fitted
    assert fitted.answers == (whole, part)
    reader = ExampleReader(student, StudentConfig(), (), 100)
    (taught,) = reader.picks(read_table(day.folder / "preferences.parquet", PREFERENCES))
    assert taught.answers == (part, whole)
    ratings = reader.feedback(read_table(day.folder / "feedback.parquet", FEEDBACK))
    assert [one.answer for one in ratings] == [[*part], [*part]]


def test_a_pick_that_does_not_fit_is_left_out(student: Path) -> None:
    whole = LONGEST - len("User: Why?\nAssistant:") - 1
    assert len(split(student, [preference("Why?", ["x", "y" * whole], 0)])) == 1
    found = split(student, [preference("Why?", ["x", "y" * (whole + 1)], 0)])
    assert (len(found), found.left_out["too_long"]) == (0, 1)


def test_a_pick_of_more_answers_than_memory_holds_is_left_out(student: Path) -> None:
    """A line of a megabyte may have hundreds of long answers, and all go through the model together."""
    length = len("User: Why?\nAssistant:") + 51
    for count, fits in ((AT_ONCE, True), (AT_ONCE * length // 51 + 1, False)):
        found = split(student, [preference("Why?", [f"{n:050d}" for n in range(count)], 0)], length)
        assert (len(found), found.left_out["too_long"]) == (fits, not fits)


def test_older_picks_weigh_less(student: Path) -> None:
    shown = [preference("Why?", ["a", "b"], 0, day=day) for day in ("2026-11-20", "2026-11-06", "2026-12-01")]
    assert [pick.weight for pick in split(student, shown).fitted] == [1.0, 0.5, 1.0]


def test_a_correction_is_fitted_and_judges_nothing(student: Path) -> None:
    """Style tells who wrote an answer; a model that learns no more must not serve."""
    origins = [{"lesson": str(n), "held_out": n < 10} for n in range(40)]
    picks = split(student, [preference(f"Why {n}?", ["a", "b"], 1, **origin) for n, origin in enumerate(origins)])
    assert len(picks.held_out) == len(picks.held_out_rows) == 10
    rows = lesson_table(*(correction(f"Why {n}?", "a", "b", **origin) for n, origin in enumerate(origins)))
    found = day_picks({"corrections": rows}, DATE, ExampleReader(student, StudentConfig(), (), LONGEST))
    assert (found.fitted, found.held_out, found.held_out_rows) == (picks.fitted, [], [])
    assert found.left_out["correction"] == 10
    assert found.lessons == picks.lessons == [str(n) for n in range(10, 40)]


def test_only_the_newest_picks_are_fitted(student: Path) -> None:
    """As many as a night has time for."""
    days = ("2026-10-01", DATE, "2026-11-19", "2026-11-01")
    shown = [preference(f"Why {n}?", ["a", "b"], 0, day=days[n % 4], lesson=str(n)) for n in range(300)]
    found = split(student, shown)
    kept = [n for n in range(300) if n % 4 in (1, 2)]  # of tonight and of last night, and the last of those before
    kept += [n for n in range(300) if n % 4 == 3][-(MOST - len(kept)) :]
    tokenizer: Any = load_tokenizer(student)
    assert [tokenizer.decode(pick.prompt) for pick in found.fitted] == [
        f"User: Why {n}?\nAssistant:" for n in sorted(kept)
    ]
    assert found.lessons == [str(n) for n in sorted(kept)]
    assert (len(found.fitted), found.left_out["older"]) == (MOST, 300 - MOST)
