"""The freeze takes every complete line of the journal, and puts aside what it cannot read."""

import json
from pathlib import Path

import pytest

from conf.sections.lessons import DayConfig
from models.hf.checkpoint import write_lineage
from models.lessons.preference_data import is_held_out
from rewards.data.synthetic_journal import generated_lines
from tasks.journal.freeze import LESSONS, frozen_lessons
from tests.tasks.doubles.journals import (
    ASKED,
    corrected,
    counts,
    freeze,
    has_learned,
    journal,
    line,
    pick,
    table,
    texts,
    words,
)

GENERATED = DayConfig(
    generated_traces=3, generated_preferences=2, generated_corrections=4, generated_feedback=5, generated_words=6
)


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_every_kind_of_line_comes_into_its_table(tmp_path: Path) -> None:
    journal(
        tmp_path,
        line("preference", messages=ASKED, responses=["3", "4", "5"], chosen=1, policy="cafe42", later="unknown key"),
        line("correction", messages=ASKED, response="3", correction="4"),
        line("feedback", messages=ASKED, response="4", value=1),
        words("Grüße 🌙"),
        line("trace", messages=ASKED, response="#### 4", teacher="me", benchmark="arithmetic", truth="4"),
        line("trace", messages=ASKED, response="four", teacher="me"),
        line("conversation", messages=[*ASKED, said("4"), *ASKED, said("5")], rewards=[None, -1]),
    )
    frozen = freeze(tmp_path, "2026-11-20")
    (pick,) = table(frozen, "preferences").to_dict("records")
    assert json.loads(pick["messages"]) == ASKED
    assert (json.loads(pick["responses"]), pick["chosen"], pick["policy"]) == (["3", "4", "5"], 1, "cafe42")
    assert (pick["source"], pick["day"]) == ("2026-11-20.jsonl:1", "2026-11-20")
    assert table(frozen, "corrections").correction.tolist() == ["4"]
    rated = table(frozen, "feedback")
    assert [*zip(rated.response, rated.value, strict=True)] == [("4", 1.0), ("4", -0.9), ("5", -1.0)]
    assert rated.source.tolist() == [f"2026-11-20.jsonl:{number}" for number in (3, 7, 7)]
    assert [len(json.loads(messages)) for messages in rated.messages] == [1, 1, 3]
    assert texts(frozen) == ["Grüße 🌙"]
    traces = table(frozen, "traces")
    assert traces.truth.tolist() == ["4", None]
    assert traces.source.tolist() == ["2026-11-20.jsonl:5", "2026-11-20.jsonl:6"]
    assert table(frozen, "quarantine").empty


def test_a_file_that_cannot_be_read_costs_the_night_nothing_else(tmp_path: Path) -> None:
    journal(tmp_path, words("one"))
    odd = tmp_path / "journal" / "2026-11-19.jsonl"
    odd.mkdir()
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["one"]
    (row,) = table(night, "quarantine").to_dict("records")
    assert (row["file"], row["line"]) == (odd.name, 0)
    assert row["reason"] == "cannot be read (Is a directory); check its permissions"
    odd.rmdir()
    journal(tmp_path, words("two"), name=odd.name)
    assert texts(freeze(tmp_path, "2026-11-21")) == ["two", "one"]


def test_a_line_that_was_cut_off_is_bad_unless_it_is_still_being_written(tmp_path: Path) -> None:
    """Nobody writes that file any more; yesterday's, in another zone, and today's may still get the rest."""
    whole = f"{words('zwölf 🌙')}\n".encode()
    for name in ("2026-11-18.jsonl", "2026-11-19.jsonl", "2026-11-20.jsonl", "talks.jsonl"):
        with journal(tmp_path, words(name), name=name).open("ab") as stream:
            stream.write(whole[:-6])  # in the middle of a letter
    night = freeze(tmp_path, "2026-11-20")
    assert table(night, "quarantine")[["file", "line"]].to_numpy().tolist() == [["2026-11-18.jsonl", 2]]
    with (tmp_path / "journal" / "talks.jsonl").open("ab") as stream:
        stream.write(whole[-6:])
    night = freeze(tmp_path, "2026-11-22")
    assert (texts(night)[-1], len(table(night, "quarantine"))) == ("zwölf 🌙", 3)


def test_a_bad_line_is_put_aside_with_its_number_and_reason_and_the_journal_not_touched(tmp_path: Path) -> None:
    late = words("late").replace("2026-11-20T", "2026-11-23T")
    file = journal(tmp_path, words("one"), "", "not JSON", words("two"), late)
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["one", "two"]
    too_late = "at: 2026-11-23T20:00:00 is in the future, more than a day after 2026-11-21"
    assert table(night, "quarantine").to_dict("records") == [
        {"file": "2026-11-20.jsonl", "line": 3, "reason": "not valid JSON at column 1"},
        {"file": "2026-11-20.jsonl", "line": 5, "reason": too_late},
    ]
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


@pytest.mark.parametrize("odd", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_a_line_break_ends_a_line(tmp_path: Path, odd: str) -> None:
    """A carriage return in the middle of a line must not end the reading of the file for ever."""
    file = journal(tmp_path, words("one"))
    with file.open("ab") as stream:
        stream.write(f"{words('two')}{odd}{words('three')}\n".encode())
    journal(tmp_path, words(f"fo{odd if odd > 'a' else ''}ur"))
    night = freeze(tmp_path, "2026-11-20")
    assert len(texts(night)) == 2
    assert table(night, "quarantine").line.tolist() == [2]


def test_lines_with_windows_line_breaks(tmp_path: Path) -> None:
    journal(tmp_path, f"{words('one')}\r", f"{words('two')}\r", "\r")
    assert texts(freeze(tmp_path, "2026-11-20")) == ["one", "two"]


def test_the_generated_day_is_marked_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    one, other = (freeze(tmp_path / name, "2026-11-20", GENERATED) for name in "ab")
    assert one.digest == other.digest
    assert table(one, "traces").source.tolist() == ["generated"] * 3
    assert table(one, "preferences").policy.tolist() == ["generated"] * 2
    assert {name: counts(one, name) for name in LESSONS} == {
        name: {"generated": count} for name, count in zip(LESSONS, (2, 4, 5, 6, 3), strict=True)
    }
    assert table(one, "quarantine").empty


def test_the_generated_days_lessons_are_for_the_student_as_it_came(tmp_path: Path) -> None:
    """They show it the form; a student that has had rounds since would be set back. Its picks go on to judge."""
    day = GENERATED
    promoted = tmp_path / "checkpoints" / "promoted"
    promoted.mkdir(parents=True)
    write_lineage(promoted, "original")
    night = freeze(tmp_path, "2026-11-20", day, start="promoted")
    assert {name: counts(night, name) for name in LESSONS if counts(night, name)} == {"preferences": {"generated": 2}}
    moved_on = freeze(tmp_path, "2026-11-19", day, start="promoted", joined_levels=("3",))
    assert (counts(moved_on, "traces"), counts(moved_on, "words")) == ({"generated": 3}, {})
    third = [line["response"] for line in generated_lines("traces", "1 2026-11-19", 3, ("3",), "2026-11-19")]
    assert table(moved_on, "traces").response.tolist() == third
    assert counts(freeze(tmp_path, "2026-11-21", day), "traces") == {"generated": 3}  # after a rollback


def test_times_that_are_none_too_late(tmp_path: Path) -> None:
    """A night lasts until the next day, whose lines can come early by a zone; and a file's own date counts too."""
    hasty = words("hasty").replace("2026-11-20T20:00:00", "2026-11-22T23:59:00+14:00")
    journal(tmp_path, hasty, words("date").replace("T20:00:00", ""), words("zulu").replace(":00:00", ":00:00Z"))
    journal(tmp_path, words("late night").replace("2026-11-20", "2026-11-30"), name="2026-11-30.jsonl")
    journal(tmp_path, words("no day").replace("2026-11-20", "2026-11-30"), name="talks.jsonl")
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["hasty", "date", "zulu", "late night"]
    assert table(night, "quarantine").file.tolist() == ["talks.jsonl"]


def test_what_the_start_has_learned_is_counted_and_stays_in_its_table(tmp_path: Path) -> None:
    """A reward model is fitted to all picks; lessons leave out what the student knows."""
    journal(tmp_path, pick(["a", "b"], 0), pick(["a", "b"], 1), words("owl"))
    first, second = table(freeze(tmp_path, "2026-11-20"), "preferences").lesson
    has_learned(tmp_path, "trained", second)
    night = freeze(tmp_path, "2026-11-21", start="trained")
    assert table(night, "preferences").lesson.tolist() == [first, second]
    assert (counts(night, "preferences"), counts(night, "words")) == ({"new": 1, "learned": 1}, {"new": 1})
    assert {first, second} < frozen_lessons(night)


def test_a_share_of_conversations_is_held_out_and_none_of_which_a_part_was_learned(tmp_path: Path) -> None:
    asked = [[{"role": "user", "content": f"{number} + 2?"}] for number in range(40)]
    for messages in asked:
        journal(tmp_path, line("feedback", messages=messages, response="?", value=1))
        journal(tmp_path, line("correction", messages=messages, response="?", correction="!"))
    night = freeze(tmp_path, "2026-11-20", unseen_share=0.25)
    judges = [is_held_out(messages, 0.25) for messages in asked]
    assert table(night, "feedback").held_out.tolist() == table(night, "corrections").held_out.tolist() == judges
    assert 5 < sum(judges) < 15
    has_learned(tmp_path, "trained", table(night, "feedback").lesson[judges.index(True)])
    again = freeze(tmp_path, "2026-11-21", start="trained", unseen_share=0.25)
    assert sum(table(again, "corrections").held_out) == sum(judges) - 1
    assert not table(freeze(tmp_path, "2026-11-22"), "corrections").held_out.any()


@pytest.mark.parametrize("judges", [True, False])
def test_a_line_says_itself_whether_its_conversation_judges(tmp_path: Path, judges: bool) -> None:
    journal(tmp_path, line("correction", messages=ASKED, response="3", correction="4", held_out=judges))
    journal(tmp_path, corrected("four"))
    night = freeze(tmp_path, "2026-11-20", unseen_share=0.5)
    assert table(night, "corrections").held_out.tolist() == [judges, judges]
