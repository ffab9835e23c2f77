"""What becomes of a server that cannot serve; one that does is in tests/models/hf/test_served_teacher.py."""

import socket
import sys
from pathlib import Path

import pytest

from benchmarks.local_teacher import served


def test_a_server_that_dies_at_the_start_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.local_teacher.SERVER", (sys.executable, "-c", "raise SystemExit('no such model')"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RuntimeError, match="did not come up: no such model"), served(tmp_path, port, tmp_path / "log"):
        pass


def test_a_port_that_is_taken_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"port {port} is taken"), served(tmp_path, port, tmp_path / "log"):
            pass
    assert not (tmp_path / "log").exists()
