"""Durable writes: the old or the new, never half; a full disk is one line and leaves what was there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conf.storage.durable import (
    DiskFullError,
    disk_is_full,
    make_folder,
    read_json,
    room_for,
    size_of,
    write_atomically,
)

FULL = Path("/dev/full")  # the kernel's own: every write ends with ENOSPC

ON_A_SMALL_DISK = """
import os
import sys
from pathlib import Path

import pyarrow as pa
import torch

from conf.storage.durable import DiskFullError, room_for, write_atomically
from models.optim.trainer_state import write_state
from safetensors.torch import save_file
from tasks.journal.tables import WORDS, WORDS_EXAMPLE
from tasks.tables import write_table

disk = Path(sys.argv[1])
write_atomically(disk / "good.txt", "good")


def refused(write):
    try:
        with room_for(disk / "stage"):
            (disk / "stage").mkdir()
            write(disk / "stage")
    except DiskFullError as error:
        print(str(error).replace(str(disk), "DISK"))
    assert sorted(path.name for path in disk.iterdir()) == ["good.txt"], list(disk.iterdir())


refused(lambda folder: (folder / "big.txt").write_bytes(os.urandom(3_000_000)))
refused(lambda folder: save_file({"a": torch.rand(1_000_000)}, folder / "a.safetensors"))
rows = [{**WORDS_EXAMPLE, "text": os.urandom(9).hex()} for _ in range(300_000)]
refused(lambda folder: write_table(folder / "a.parquet", WORDS, rows))
note = {"checkpoint": "cafe42", "step": 1, "non_finite": 0}
refused(lambda folder: write_state(folder, {"a": torch.rand(1_000_000)}, **note))
assert (disk / "good.txt").read_text() == "good"
"""


def test_new_folders_are_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[Path] = []
    monkeypatch.setattr("conf.storage.durable.sync", forced.append)
    make_folder(tmp_path / "nights" / "2026-01-01" / "distill")
    assert forced == [tmp_path, tmp_path / "nights", tmp_path / "nights" / "2026-01-01"]
    make_folder(tmp_path / "nights" / "2026-01-01" / "distill")
    assert (tmp_path / "nights" / "2026-01-01" / "distill").is_dir()


def test_a_json_file_that_is_missing_and_one_that_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "note.json"
    assert (read_json(file), read_json(file, [])) == (None, [])
    write_atomically(file, '{"rounds": 2}')
    assert read_json(file) == {"rounds": 2}
    file.write_text('{"rounds":')
    with pytest.raises(ValueError, match="Expecting value"):
        read_json(file, {})


def test_what_was_there_before_stands_when_the_disk_is_full(tmp_path: Path) -> None:
    file = tmp_path / "champion.txt"
    write_atomically(file, "old")
    (tmp_path / "champion.txt.draft").symlink_to(FULL)
    with pytest.raises(DiskFullError) as caught:
        write_atomically(file, "new" * 1000)
    said = str(caught.value)
    assert said.startswith(f"{file}.draft: the disk is full: about 0.0 MB are needed, and ")
    assert said.endswith(" MB are free; make room, and run the same command again: it resumes")
    assert len(said.splitlines()) == 1
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    write_atomically(file, "new")
    assert file.read_text() == "new"


def test_what_needs_more_than_is_free_is_not_even_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_500_000))
    said = "state: the disk is full: about 2.0 MB are needed, and 1.5 MB are free; make room"
    with pytest.raises(DiskFullError, match=said), room_for(tmp_path / "not" / "there" / "state", 2_000_000):
        raise AssertionError("it was begun")
    with room_for(tmp_path / "state", 1_500_000):
        (tmp_path / "state").mkdir()
    assert (tmp_path / "state").exists()


def test_the_size_of_a_folder_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kept", "draft"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tensors").write_bytes(b"x" * 1000)
    real = os.scandir

    def scanned(folder: str) -> Any:
        if Path(folder).name == "draft":
            monkeypatch.undo()
            shutil.rmtree(folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scanned)
    assert size_of(tmp_path) == 1000
    assert size_of(tmp_path / "draft") == 0


def test_a_half_written_folder_goes_with_the_error_and_no_other_error_takes_it(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    folder.mkdir()
    (folder / "good.txt").write_bytes(b"x" * 300_000)
    with pytest.raises(ValueError, match="wrong"), room_for(folder):
        raise ValueError("wrong")
    assert size_of(folder) == 300_000
    with pytest.raises(DiskFullError, match=r"more than 0\.3 MB are needed"), room_for(folder):
        FULL.write_text("x")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(122, "Disk quota exceeded"), True),
        (RuntimeError("(sqlite3.OperationalError) database or disk is full"), True),
        (RuntimeError('Error: IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })'), True),
        (OSError(27, "File too large"), False),
        (ValueError("wrong"), False),
    ],
)
def test_how_a_full_disk_is_recognised(error: Exception, full: bool) -> None:
    assert disk_is_full(error) == full


def test_on_a_disk_that_really_is_full(tmp_path: Path) -> None:
    """Text, tensors, a table and a trainer's state on a file system of 1 MiB, in a name space of its own."""
    disk, script = tmp_path / "disk", tmp_path / "script.py"
    disk.mkdir()
    script.write_text(ON_A_SMALL_DISK)
    mount = f"mount -t tmpfs -o size=1m none {disk} && "
    if subprocess.run(["unshare", "-rm", "sh", "-c", f"{mount}true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a file system of their own")
    command = ["unshare", "-rm", "sh", "-c", f"{mount}exec {sys.executable} {script} {disk}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *within, before = done.stdout.splitlines()
    assert [line.startswith("DISK/stage: the disk is full: more than ") for line in within] == [True] * 3
    assert before.startswith("DISK/stage: the disk is full: about 4.0 MB are needed, and 1.0 MB are free; make room")
