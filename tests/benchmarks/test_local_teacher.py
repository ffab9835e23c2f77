"""Servers that cannot serve; for one that can see tests/models/hf/test_served_teacher.py."""

import socket
import sys
from pathlib import Path

import pytest

from benchmarks.local_teacher import served


def test_a_server_that_dies_leaves_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.local_teacher.SERVER", (sys.executable, "-c", "raise SystemExit('no such model')"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RuntimeError, match="did not start: no such model"), served(tmp_path, port, tmp_path / "log"):
        pass


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"port {port} is taken"), served(tmp_path, port, tmp_path / "log"):
            pass
    assert not (tmp_path / "log").exists()
