"""What must outlive a power cut is forced to the disk."""

from pathlib import Path

import pytest

from conf.storage import durable
from conf.storage.durable import make_folder


def test_the_names_of_new_folders_are_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[Path] = []
    monkeypatch.setattr(durable, "sync", forced.append)
    make_folder(tmp_path / "nights" / "2026-01-01" / "distill")
    assert forced == [tmp_path, tmp_path / "nights", tmp_path / "nights" / "2026-01-01"]
    make_folder(tmp_path / "nights" / "2026-01-01" / "distill")
    assert (tmp_path / "nights" / "2026-01-01" / "distill").is_dir()
