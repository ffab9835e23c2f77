"""The freeze takes every complete line of the journal exactly once, and puts aside what it cannot read."""

import json
import shutil
from pathlib import Path

import pytest

from conf.sections.lessons import DayConfig
from conf.storage.home import NightError
from models.checkpoint import write_lineage
from rewards.data.synthetic_journal import generated_lines
from tasks.journal.freeze import LESSONS
from tasks.journal.spans import consumed
from tests.tasks.doubles.journals import ASKED, counts, freeze, journal, line, pick, table, texts, words


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
    assert (pick["source"], pick["night"]) == ("2026-11-20.jsonl:1", "2026-11-20")
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


def test_each_night_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    journal(tmp_path, words("one"), words("zwölf"))
    journal(tmp_path, words("other"), name="2026-11-19.jsonl")
    assert texts(freeze(tmp_path, "2026-11-20")) == ["other", "one", "zwölf"]
    file = journal(tmp_path, "no JSON", words("three"))
    night = freeze(tmp_path, "2026-11-21")
    assert texts(night) == ["three"]
    assert table(night, "words").source.tolist()[-1] == "2026-11-20.jsonl:4"
    assert table(night, "quarantine").line.tolist() == [3]
    assert consumed(tmp_path / "nights")["2026-11-20.jsonl"][-1][1] == file.stat().st_size
    assert texts(freeze(tmp_path, "2026-11-22")) == []


def test_a_missed_or_uncommitted_night_loses_nothing(tmp_path: Path) -> None:
    journal(tmp_path, words("one"))
    freeze(tmp_path, "2026-11-20", committed=False)
    journal(tmp_path, words("two"))
    assert texts(freeze(tmp_path, "2026-11-23")) == ["one", "two"]


@pytest.mark.parametrize("again", ["2026-11-20", "2026-11-22"])
def test_what_a_freeze_took_that_is_gone_is_taken_once_more(tmp_path: Path, again: str) -> None:
    """Its night's own, or a later one's; what nights after it took stays taken, wherever in the file that lies."""
    file = journal(tmp_path, words("one"), words("two"))
    lost = freeze(tmp_path, "2026-11-20")
    journal(tmp_path, "no JSON", words("three"))
    freeze(tmp_path, "2026-11-21")
    journal(tmp_path, words("four"))
    shutil.rmtree(lost.folder)
    night = freeze(tmp_path, again)
    assert texts(night) == ["one", "two", "four"]
    mine = table(night, "words")
    assert mine[mine.night == again].source.tolist() == [f"2026-11-20.jsonl:{number}" for number in (1, 2, 5)]
    spans = consumed(tmp_path / "nights")["2026-11-20.jsonl"]
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]  # no gap, nothing twice
    assert spans[-1][1] == file.stat().st_size
    assert texts(freeze(tmp_path, "2026-11-23")) == []


def test_a_gap_that_ends_with_a_line_without_a_line_break(tmp_path: Path) -> None:
    file = journal(tmp_path)
    file.write_text(words("one"))
    lost = freeze(tmp_path, "2026-11-20")
    with file.open("a") as stream:
        stream.write(f"\n{words('two')}\n")
    freeze(tmp_path, "2026-11-21")
    shutil.rmtree(lost.folder)
    assert texts(freeze(tmp_path, "2026-11-22")) == ["one"]


def test_a_file_that_cannot_be_read_costs_the_night_nothing_else(tmp_path: Path) -> None:
    journal(tmp_path, words("one"))
    odd = tmp_path / "journal" / "2026-11-19.jsonl"
    odd.mkdir()
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["one"]
    (row,) = table(night, "quarantine").to_dict("records")
    assert (row["file"], row["line"]) == (odd.name, 0)
    assert row["reason"].startswith("cannot be read (Is a directory), so none of its lines was taken")
    odd.rmdir()
    journal(tmp_path, words("two"), name=odd.name)
    assert texts(freeze(tmp_path, "2026-11-21")) == ["two"]


def test_a_file_that_is_shorter_than_what_was_taken_is_left_alone(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"), words("two"))
    freeze(tmp_path, "2026-11-20")
    file.write_text(f"{words('two')}\n")
    night = freeze(tmp_path, "2026-11-21")
    assert texts(night) == []
    assert "but earlier nights took" in table(night, "quarantine").reason[0]
    file.rename(file.with_stem("shortened"))
    assert texts(freeze(tmp_path, "2026-11-22")) == ["two"]


def test_what_is_taken_is_on_the_disk_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not wait for the disk, and a power cut: the line may go, but is then not noted as taken."""
    file = journal(tmp_path, words("one"))
    monkeypatch.setattr("tasks.journal.freeze.sync", lambda _: journal(tmp_path, words("two")))
    assert texts(freeze(tmp_path, "2026-11-20")) == ["one", "two"]  # what is read comes after it
    monkeypatch.setattr("tasks.journal.freeze.sync", Path.unlink)
    freeze(tmp_path, "2026-11-21")
    assert not file.exists()


def test_a_line_that_was_cut_off_on_an_earlier_day_is_bad(tmp_path: Path) -> None:
    """Nobody writes that file any more; yesterday's, in another zone, and today's may still get the rest."""
    for name in ("2026-11-18.jsonl", "2026-11-19.jsonl", "2026-11-20.jsonl", "talks.jsonl"):
        with journal(tmp_path, words(name), name=name).open("a") as stream:
            stream.write('{"version": 1, "kind": "wor')
    night = freeze(tmp_path, "2026-11-20")
    assert table(night, "quarantine")[["file", "line"]].to_numpy().tolist() == [["2026-11-18.jsonl", 2]]
    assert table(freeze(tmp_path, "2026-11-21"), "quarantine").file.tolist() == ["2026-11-19.jsonl"]
    assert table(freeze(tmp_path, "2026-11-22"), "quarantine").file.tolist() == ["2026-11-20.jsonl"]
    assert table(freeze(tmp_path, "2026-11-23"), "quarantine").empty


def test_a_line_that_is_still_being_written_belongs_to_the_next_night(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"), name="talks.jsonl")
    for day, share in enumerate((0.01, 0.6, 0.99)):
        whole = words(f"zwölf 🌙 {day}").encode()
        cut = int(len(whole) * share)
        with file.open("ab") as stream:
            stream.write(whole[:cut])
        night = freeze(tmp_path, f"2026-11-2{2 * day}")
        assert table(night, "quarantine").empty
        assert texts(night) == (["one"] if day == 0 else [])
        with file.open("ab") as stream:
            stream.write(whole[cut:] + b"\n")
        assert texts(freeze(tmp_path, f"2026-11-2{2 * day + 1}")) == [f"zwölf 🌙 {day}"]


def test_a_last_line_without_a_line_break_is_taken_where_it_is_whole(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"))
    with file.open("a") as stream:
        stream.write(words("two"))
    assert texts(freeze(tmp_path, "2026-11-20")) == ["one", "two"]
    with file.open("a") as stream:
        stream.write("\n")
    journal(tmp_path, words("three"))
    night = freeze(tmp_path, "2026-11-21")
    assert table(night, "words")[["text", "source"]].to_numpy().tolist()[2:] == [["three", "2026-11-20.jsonl:3"]]


def test_a_bad_line_is_put_aside_with_its_number_and_reason(tmp_path: Path) -> None:
    journal(tmp_path, words("one"), "", "not JSON", words("two"), words("late").replace("2026-11-20T", "2026-11-23T"))
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["one", "two"]
    assert table(night, "quarantine").to_dict("records") == [
        {"file": "2026-11-20.jsonl", "line": 3, "reason": "not valid JSON at column 1"},
        {
            "file": "2026-11-20.jsonl",
            "line": 5,
            "reason": "at: 2026-11-23T20:00:00 is in the future, more than a day after 2026-11-21",
        },
    ]


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
    assert consumed(tmp_path / "nights")["2026-11-20.jsonl"] == [(0, file.stat().st_size)]


def test_lines_with_windows_line_breaks(tmp_path: Path) -> None:
    journal(tmp_path, f"{words('one')}\r", f"{words('two')}\r", "\r")
    assert texts(freeze(tmp_path, "2026-11-20")) == ["one", "two"]


def test_the_generated_day_is_marked_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    day = DayConfig(
        generated_traces=3, generated_preferences=2, generated_corrections=4, generated_feedback=5, generated_words=6
    )
    one, other = freeze(tmp_path / "a", "2026-11-20", day), freeze(tmp_path / "b", "2026-11-20", day)
    assert one.digest == other.digest
    assert table(one, "traces").source.tolist() == ["generated"] * 3
    assert table(one, "preferences").policy.tolist() == ["generated"] * 2
    assert {name: counts(one, name) for name in LESSONS} == {
        name: {"generated": count} for name, count in zip(LESSONS, (2, 4, 5, 6, 3), strict=True)
    }
    assert table(one, "quarantine").empty


def test_the_generated_days_lessons_are_for_the_student_as_it_came(tmp_path: Path) -> None:
    """They show it the form; who has had rounds since would be set back. Its picks teach once, and go on to judge."""
    day = DayConfig(
        generated_traces=3, generated_preferences=2, generated_corrections=4, generated_feedback=5, generated_words=6
    )
    promoted = tmp_path / "checkpoints" / "promoted"
    promoted.mkdir(parents=True)
    write_lineage(promoted, "original")
    night = freeze(tmp_path, "2026-11-20", day, champion="promoted")
    assert {name: counts(night, name) for name in LESSONS if counts(night, name)} == {"preferences": {"generated": 2}}
    assert table(night, "preferences").learnt.tolist() == [True, True]
    moved_on = freeze(tmp_path, "2026-11-19", day, champion="promoted", new_levels=("3",))
    assert (counts(moved_on, "traces"), counts(moved_on, "words")) == ({"generated": 3}, {})
    third = [line["response"] for line in generated_lines("traces", "1", 3, ("3",), "2026-11-19")]
    assert table(moved_on, "traces").response.tolist() == third
    assert counts(freeze(tmp_path, "2026-11-21", day), "traces") == {"generated": 3}  # after a rollback


def test_the_journal_itself_is_never_touched(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"), "bad")
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    freeze(tmp_path, "2026-11-20")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_times_that_are_none_too_late(tmp_path: Path) -> None:
    """A night lasts until the next day, whose lines can come early by a zone; and a file's own date counts too."""
    hasty = words("hasty").replace("2026-11-20T20:00:00", "2026-11-22T23:59:00+14:00")
    journal(tmp_path, hasty, words("date").replace("T20:00:00", ""), words("zulu").replace(":00:00", ":00:00Z"))
    journal(tmp_path, words("late night").replace("2026-11-20", "2026-11-30"), name="2026-11-30.jsonl")
    journal(tmp_path, words("no day").replace("2026-11-20", "2026-11-30"), name="talks.jsonl")
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["hasty", "date", "zulu", "late night"]
    assert table(night, "quarantine").file.tolist() == ["talks.jsonl"]


def test_a_lesson_said_twice_is_learnt_once_and_counted(tmp_path: Path) -> None:
    picked = pick(["a", "b"], 0)
    again = picked.replace("T20:", "T21:").replace('"version": 1', '"client": "a retry", "version": 1')
    journal(tmp_path, picked, again, pick(["a", "b"], 1), pick(["b", "a"], 0), pick(["a", "b"], 0, "beef43"))
    journal(tmp_path, words("a"), words("b"), words("a"))
    night = freeze(tmp_path, "2026-11-20")
    assert table(night, "preferences").source.tolist() == [f"2026-11-20.jsonl:{number}" for number in (1, 3, 4, 5)]
    assert counts(night, "preferences") == {"new": 4, "duplicates": 1}
    assert (texts(night), counts(night, "words")) == (["a", "b"], {"new": 2, "duplicates": 1})
    assert counts(night, "traces") == {}


def test_a_pick_of_an_unknown_checkpoint_stays_a_pick_and_is_counted(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "cafe42").mkdir(parents=True)
    policies = ["cafe42", "imported", "unheard-of", "../nights", "x" * 5000, "\0"]
    journal(tmp_path, *(pick(["a", "b"], 0, policy) for policy in policies))
    night = freeze(tmp_path, "2026-11-20", DayConfig(generated_preferences=1))
    assert table(night, "preferences").policy.tolist() == [*policies, "generated"]
    assert night.figure("unknown_policies") == 4


def test_a_freeze_that_is_made_again_is_the_same_whatever_checkpoints_have_gone(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "cafe42").mkdir(parents=True)
    journal(tmp_path, pick(["a", "b"], 0, "cafe42"))
    before = freeze(tmp_path, "2026-11-20")
    assert before.figure("unknown_policies") == 0
    (tmp_path / "checkpoints" / "cafe42").rmdir()
    shutil.rmtree(before.folder)
    again = freeze(tmp_path, "2026-11-20")
    assert again.figure("unknown_policies") == 1
    assert again.digest == before.digest


@pytest.mark.parametrize(
    ("damaged", "damage"),
    [
        ("taken.json", b'{"model": "starter", "bytes": {}, "replayed": {}}'),
        ("taken.json", None),
        ("manifest.json", b"{"),
    ],
)
def test_a_damaged_record_of_what_a_night_took_is_refused_by_name(
    tmp_path: Path, damaged: str, damage: bytes | None
) -> None:
    journal(tmp_path, words("one"))
    folder = freeze(tmp_path, "2026-11-20").folder
    (folder / damaged).unlink() if damage is None else (folder / damaged).write_bytes(damage)
    message = (
        f"{folder / 'taken.json'}: damaged, so .*; restore the file, or remove {folder}, and the next night learns"
    )
    with pytest.raises(NightError, match=message):
        freeze(tmp_path, "2026-11-21")
