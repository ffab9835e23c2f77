"""The teacher of the benchmarks: one that was made in another way is made anew."""

from pathlib import Path

import pytest

from benchmarks.inputs import starter


class MakingError(Exception):
    """It is about to be made."""


def test_a_teacher_is_reused_only_if_it_was_made_with_the_same_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpacked() -> Path:
        raise MakingError

    monkeypatch.setattr(starter, "STUDIED", tmp_path / "studied")
    monkeypatch.setattr(starter, "starter", unpacked)
    (tmp_path / "studied").mkdir()
    for note in ("", repr(starter.LESSONS)):  # the latter when lessons were rounded at their end
        (tmp_path / "studied.txt").write_text(note)
        with pytest.raises(MakingError):
            starter.studied()
    (tmp_path / "studied.txt").write_text(starter.MADE)
    assert starter.studied() == tmp_path / "studied"
