"""Programs that write a journal at once, and die while they do, lose no line but the one they were at."""

import datetime
import fcntl
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from conf.storage.home import InputError
from conf.storage.journal import Entry, entry_of, line_of
from conf.storage.journal_file import UNFINISHED, append, read_file, retract

WRITER = """
import itertools, sys
from pathlib import Path
from conf.storage.journal import entry_of
from conf.storage.journal_file import append

name, journal, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
for number in itertools.count():
    append(journal, [entry_of({"kind": "words", "text": f"{name}-{number} " + name * size})])
    print(number, flush=True)
"""


def words(text: str) -> Entry:
    return entry_of({"kind": "words", "text": text})


def texts(file: Path) -> list[str]:
    return [entry.text for _, entry in read_file(file)[0]]


def test_lines_come_to_the_file_of_the_day_in_their_order(tmp_path: Path) -> None:
    journal = tmp_path / "school" / "journal"
    file = append(journal, [words("one"), words("zwölf 🌙")]).file
    assert file == journal / f"{datetime.date.today()}.jsonl"
    assert append(journal, [words("a\nb")]).file == file
    assert texts(file) == ["one", "zwölf 🌙", "a\nb"]
    assert file.read_bytes().count(b"\n") == 3
    assert file.stat().st_mode & 0o077 == 0
    append(journal, [])
    assert len(texts(file)) == 3


@pytest.mark.parametrize("torn", [b'{"version": 1, "kind": "wor', b"\xf0\x9f", b"x"])
def test_a_line_that_a_crash_has_cut_off_is_lost_alone(tmp_path: Path, torn: bytes) -> None:
    file = append(tmp_path, [words("one")]).file
    with file.open("ab") as stream:
        stream.write(torn)
    append(tmp_path, [words("two"), words("three")])
    assert texts(file) == ["one", "two", "three"]
    assert [bad["line"] for bad in read_file(file)[1]] == [2]


def test_a_whole_line_without_its_end_is_not_lost(tmp_path: Path) -> None:
    file = append(tmp_path, [words("one")]).file
    file.write_bytes(file.read_bytes()[:-1])
    append(tmp_path, [words("two")])
    assert (texts(file), read_file(file)[1]) == (["one", "two"], [])


def test_programs_that_write_at_once_and_are_killed(tmp_path: Path) -> None:
    """What a program was told is written is there, whole; each kill costs at most the line it struck."""
    writers = {
        name: subprocess.Popen(
            [sys.executable, "-c", WRITER, name, str(tmp_path), str(size)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, size in {"a": 10, "b": 200_000, "c": 50_000, "d": 5_000}.items()
    }
    for writer in writers.values():
        assert writer.stdout.readline() == "0\n"  # all of them write by now
    for writer in writers.values():
        time.sleep(0.03)
        writer.send_signal(signal.SIGKILL)
    acknowledged = {
        f"{name}-{number}"
        for name, writer in writers.items()
        for number in ["0", *writer.communicate()[0].split("\n")[:-1]]
    }
    file = append(tmp_path, [words("after")]).file
    good, bad = read_file(file)
    written = [entry.text for _, entry in good]
    assert acknowledged <= {text.split()[0] for text in written}
    assert len(written) == len(set(written))
    assert written[-1] == "after"
    assert len(bad) <= len(writers)


def test_who_writes_waits_for_the_lock(tmp_path: Path) -> None:
    """A program in another language may write a line with more than one call."""
    file = append(tmp_path, [words("one")]).file
    with file.open("ab") as other, ThreadPoolExecutor() as threads:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = threads.submit(append, tmp_path, [words("two")])
        other.write(line := line_of(words("in two parts")))
        assert not wait([waiting], timeout=0.3).done
        other.flush()
        assert file.read_bytes().endswith(line)
        fcntl.flock(other, fcntl.LOCK_UN)
    assert texts(file) == ["one", "in two parts", "two"]


def test_what_is_written_is_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines at every call, and the names of a file and of folders that are new."""
    forced: list[tuple[Path, int]] = []

    def fsync(handle: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        forced.append((place, place.stat().st_size if place.is_file() else 0))

    monkeypatch.setattr(os, "fsync", fsync)
    journal = tmp_path / "school" / "journal"
    file = append(journal, [words("one")]).file
    assert {(file, file.stat().st_size), (journal, 0), (journal.parent, 0), (tmp_path, 0)} <= {*forced}
    forced.clear()
    append(journal, [words("two")])
    assert forced == [(file, file.stat().st_size)]


def test_a_journal_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file")
    with pytest.raises(InputError, match="journal/.*: cannot be written"):
        append(tmp_path / "journal", [words("one")])


def test_a_last_line_without_its_end_counts_where_it_is_whole(tmp_path: Path) -> None:
    """Otherwise it may still be being written, unless the file is of a day that is long over."""
    for name in ("talks", "2020-01-01"):
        file = tmp_path / f"{name}.jsonl"
        file.write_bytes(b"\n \n" + line_of(words("one")) + line_of(words("two"))[:-1])
        assert texts(file) == ["one", "two"]
        file.write_bytes(file.read_bytes()[:-1])
        (bad,) = read_file(file)[1]
        assert (bad["line"], bad["reason"] == UNFINISHED) == (4, name == "talks")


def test_lines_that_are_taken_back_are_blank_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    append(tmp_path, [words("one")])
    written = append(tmp_path, [words("two\r"), words("zwölf")])
    append(tmp_path, [words("four")])
    retract(written)
    assert [(number, entry.text) for number, entry in read_file(written.file)[0]] == [(1, "one"), (4, "four")]


def test_a_file_named_after_a_later_day_may_hold_lines_of_it(tmp_path: Path) -> None:
    file = tmp_path / "2099-01-01.jsonl"
    file.write_text('{"version": 1, "kind": "words", "text": "two", "at": "2099-01-01"}\n')
    assert texts(file) == ["two"]
