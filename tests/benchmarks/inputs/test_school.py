"""What the benchmarks leave in a home's place is no hindrance to a night there."""

from pathlib import Path

import pytest

from benchmarks.inputs.school import SCHOOL, make
from conf.storage.home import Home


def test_a_benchmark_before_the_first_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("benchmarks/starter", "floor"):
        assert make(SCHOOL / place).is_dir()
    assert SCHOOL.stat().st_mode & 0o777 == 0o700
    assert not Home(SCHOOL.resolve()).make_private()  # nothing to mend, and not refused
    elsewhere = make(tmp_path / "results")
    assert elsewhere.stat().st_mode & 0o077
