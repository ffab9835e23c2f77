"""Servers that cannot serve; for one that can see tests/models/hf/test_served_teacher.py."""

import sys
from pathlib import Path

import pytest

from benchmarks.local_teacher import served
from flows.web.address import free_port


def test_a_server_that_dies_leaves_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.local_teacher.SERVER", (sys.executable, "-c", "raise SystemExit('no such model')"))
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="did not start: no such model"), served(tmp_path, free_port(), log):
        pass
