"""The freeze takes every complete line of the journal exactly once, and puts aside what it cannot read."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from conf.lessons import DayConfig
from tasks.freeze_journal import DamagedFreezeError, check_file, consumed, freeze_journal
from tasks.stage import Artifact, commit
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, QUARANTINE, TRACES, WORDS, read_table

SCHEMAS = {
    "preferences": PREFERENCES,
    "corrections": CORRECTIONS,
    "feedback": FEEDBACK,
    "words": WORDS,
    "traces": TRACES,
    "quarantine": QUARANTINE,
}
ASKED = [{"role": "user", "content": "2 + 2?"}]


def line(kind: str, **fields: Any) -> str:
    return json.dumps({"version": 1, "kind": kind, "at": "2026-11-20T20:00:00", **fields}, ensure_ascii=False)


def words(text: str) -> str:
    return line("words", text=text)


def journal(home: Path, *lines: str, name: str = "2026-11-20.jsonl") -> Path:
    """Appends lines to a file of the journal."""
    file = home / "journal" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", newline="") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    return file


def freeze(home: Path, date: str, day: DayConfig | None = None, *, committed: bool = True) -> Artifact:
    folder = home / "nights" / date / "freeze_journal"
    folder.mkdir(parents=True)
    freeze_journal.write(
        folder,
        day=day or DayConfig(),
        levels=("1",),
        seed="1",
        date=date,
        journal=home / "journal",
        nights=home / "nights",
    )
    return commit(folder, "freeze_journal", {}, 0.0) if committed else Artifact(folder=folder, digest="")


def table(artifact: Artifact, name: str) -> pd.DataFrame:
    schema: pa.Schema = SCHEMAS[name]
    return read_table(artifact.folder / f"{name}.parquet", schema)


def texts(artifact: Artifact) -> list[str]:
    return table(artifact, "words").text.tolist()


def test_every_kind_of_line_comes_into_its_table(tmp_path: Path) -> None:
    journal(
        tmp_path,
        line("preference", messages=ASKED, responses=["3", "4", "5"], chosen=1, policy="cafe42", later="unknown key"),
        line("correction", messages=ASKED, response="3", correction="4"),
        line("feedback", messages=ASKED, response="4", value=1),
        words("Grüße 🌙"),
        line("trace", messages=ASKED, response="#### 4", teacher="me", benchmark="arithmetic", truth="4"),
        line("trace", messages=ASKED, response="four", teacher="me"),
    )
    frozen = freeze(tmp_path, "2026-11-20")
    (pick,) = table(frozen, "preferences").to_dict("records")
    assert json.loads(pick["messages"]) == ASKED
    assert (json.loads(pick["responses"]), pick["chosen"], pick["policy"]) == (["3", "4", "5"], 1, "cafe42")
    assert pick["source"] == "2026-11-20.jsonl:1"
    assert table(frozen, "corrections").correction.tolist() == ["4"]
    assert table(frozen, "feedback").value.tolist() == [1.0]
    assert texts(frozen) == ["Grüße 🌙"]
    traces = table(frozen, "traces")
    assert traces.truth.tolist() == ["4", None]
    assert traces.source.tolist() == ["2026-11-20.jsonl:5", "2026-11-20.jsonl:6"]
    assert table(frozen, "quarantine").empty


def test_no_journal_at_all(tmp_path: Path) -> None:
    frozen = freeze(tmp_path, "2026-11-20")
    assert all(table(frozen, name).empty for name in SCHEMAS)
    assert consumed(tmp_path / "nights") == {}


def test_each_night_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    journal(tmp_path, words("one"), words("zwölf"))
    journal(tmp_path, words("other"), name="2026-11-19.jsonl")
    assert texts(freeze(tmp_path, "2026-11-20")) == ["other", "one", "zwölf"]
    file = journal(tmp_path, "no JSON", words("three"))
    night = freeze(tmp_path, "2026-11-21")
    assert texts(night) == ["three"]
    assert table(night, "words").source.tolist() == ["2026-11-20.jsonl:4"]
    assert table(night, "quarantine").line.tolist() == [3]
    assert consumed(tmp_path / "nights")["2026-11-20.jsonl"] == file.stat().st_size
    assert texts(freeze(tmp_path, "2026-11-22")) == []


def test_a_missed_or_uncommitted_night_loses_nothing(tmp_path: Path) -> None:
    journal(tmp_path, words("one"))
    freeze(tmp_path, "2026-11-20", committed=False)
    journal(tmp_path, words("two"))
    assert texts(freeze(tmp_path, "2026-11-23")) == ["one", "two"]


def test_a_line_that_is_still_being_written_belongs_to_the_next_night(tmp_path: Path) -> None:
    whole = words("zwölf 🌙").encode()
    file = journal(tmp_path, words("one"))
    for cut in (1, whole.index("ö".encode()) + 1, len(whole) - 1):
        with file.open("ab") as stream:
            stream.write(whole[:cut])
        night = freeze(tmp_path, f"2026-11-2{cut % 10}-{cut}")
        assert table(night, "quarantine").empty
        assert texts(night) == (["one"] if cut == 1 else [])
        with file.open("ab") as stream:
            stream.write(whole[cut:] + b"\n")
        assert texts(freeze(tmp_path, f"2026-12-2{cut % 10}-{cut}")) == ["zwölf 🌙"]


def test_a_last_line_without_a_line_break_is_taken_where_it_is_whole(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"))
    with file.open("a") as stream:
        stream.write(words("two"))
    assert texts(freeze(tmp_path, "2026-11-20")) == ["one", "two"]
    with file.open("a") as stream:
        stream.write("\n")
    journal(tmp_path, words("three"))
    night = freeze(tmp_path, "2026-11-21")
    assert table(night, "words")[["text", "source"]].to_numpy().tolist() == [["three", "2026-11-20.jsonl:3"]]


BAD = [
    ("not JSON", "Invalid JSON"),
    ("[1, 2]", "an object"),
    ('{"version": 1}', "kind"),
    (line("gossip", text="x"), "'kind'"),
    (words("x").replace('"version": 1', '"version": 2'), "version"),
    (line("words", text=""), "text: String should have at least 1 character"),
    (line("preference", messages=ASKED, responses=["a", "b"], chosen=2, policy="p"), "chosen is 2, but there are 2"),
    (line("preference", messages=ASKED, responses=["a", "b"], chosen=-1, policy="p"), "chosen"),
    (line("preference", messages=ASKED, responses=["a"], chosen=0, policy="p"), "responses"),
    (line("feedback", messages=ASKED, response="a", value=7), "value"),
    (line("correction", messages=[], response="a", correction="b"), "messages"),
    (line("trace", messages=[{"role": "owl", "content": "hu"}], response="a", teacher="t"), "messages.0.role"),
    (r'{"version": 1, "kind": "words", "at": "", "text": "half a pair \ud800"}', "Invalid JSON"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_line_is_put_aside_with_its_number_and_reason(tmp_path: Path, bad: str, reason: str) -> None:
    journal(tmp_path, words("one"), "", bad, words("two"))
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["one", "two"]
    (row,) = table(night, "quarantine").to_dict("records")
    assert (row["file"], row["line"]) == ("2026-11-20.jsonl", 3)
    assert reason in row["reason"]
    assert "\n" not in row["reason"]


def test_bytes_that_are_no_text_and_a_line_of_two_megabytes(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"))
    with file.open("ab") as stream:
        stream.write(b'{"version": 1, "kind": "words", "at": "", "text": "\xff\xfe"}\n')
    journal(tmp_path, words("x" * 2_000_000), words("two"))
    night = freeze(tmp_path, "2026-11-20")
    assert texts(night) == ["one", "two"]
    quarantine = table(night, "quarantine")
    assert quarantine.line.tolist() == [2, 3]
    assert quarantine.reason[0] == "not UTF-8 (byte 51)"
    assert quarantine.reason[1].endswith("bytes; at most 1000000 are allowed")


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
    assert consumed(tmp_path / "nights")["2026-11-20.jsonl"] == file.stat().st_size


def test_lines_with_windows_line_breaks(tmp_path: Path) -> None:
    journal(tmp_path, f"{words('one')}\r", f"{words('two')}\r", "\r")
    assert texts(freeze(tmp_path, "2026-11-20")) == ["one", "two"]


def test_the_generated_day_is_marked_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    day = DayConfig(generated_traces=3, generated_preferences=2)
    one, other = freeze(tmp_path / "a", "2026-11-20", day), freeze(tmp_path / "b", "2026-11-20", day)
    assert one.digest == other.digest
    assert table(one, "traces").source.tolist() == ["generated"] * 3
    assert table(one, "preferences").policy.tolist() == ["generated"] * 2
    assert table(one, "quarantine").empty


def test_the_journal_itself_is_never_touched(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"), "bad")
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    freeze(tmp_path, "2026-11-20")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_a_file_is_checked_without_any_night(tmp_path: Path) -> None:
    file = journal(tmp_path, words("one"), "bad", "", words("two"))
    good, bad = check_file(file)
    assert good == 2
    assert [entry["line"] for entry in bad] == [2]
    with file.open("a") as stream:
        stream.write(words("three")[:-1])
    good, bad = check_file(file)
    assert good == 2
    assert [entry["line"] for entry in bad] == [2, 5]
    assert "cut off" in bad[1]["reason"]
    assert list(tmp_path.iterdir()) == [tmp_path / "journal"]


@pytest.mark.parametrize("damage", [b'{"2026-11-20.jsonl": 0}', b"{", None])
def test_what_a_night_took_and_nobody_knows_any_more_is_refused_by_name(tmp_path: Path, damage: bytes | None) -> None:
    journal(tmp_path, words("one"))
    offsets = freeze(tmp_path, "2026-11-20").folder / "offsets.json"
    offsets.unlink() if damage is None else offsets.write_bytes(damage)
    with pytest.raises(DamagedFreezeError, match=f"{offsets}: it was damaged: .*; restore the file, or remove "):
        consumed(tmp_path / "nights")
