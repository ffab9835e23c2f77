"""The machine is the server's or the night's, never both: who comes second waits, or is told whom to end."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conf.storage.home import InputError
from conf.storage.locks import FILE, hold, night_of, take, wait_until_free


def test_where_nobody_ever_served_nothing_is_waited_for_or_written(tmp_path: Path) -> None:
    wait_until_free(tmp_path, limit=0.0)
    assert list(tmp_path.iterdir()) == []


def test_a_night_waits_until_the_server_lets_go(tmp_path: Path) -> None:
    lock, let_go = take(tmp_path, 4711), threading.Event()

    def end() -> None:
        time.sleep(0.3)
        let_go.set()
        lock.close()

    threading.Thread(target=end).start()
    wait_until_free(tmp_path, limit=20.0)
    assert let_go.is_set()
    take(tmp_path, 4712).close()  # and does not keep it


def test_a_server_that_does_not_let_go_is_named(tmp_path: Path) -> None:
    with take(tmp_path, 4711), pytest.raises(InputError) as caught:
        wait_until_free(tmp_path, limit=0.5)
    assert str(caught.value) == (
        f"{tmp_path}: nightschool serve (process 4711) does not make room for the night; "
        "end it with Ctrl-C there, and begin the night again"
    )


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    with take(tmp_path, 4711), pytest.raises(InputError) as caught:
        take(tmp_path, 4712)
    assert str(caught.value) == f"{tmp_path}: process 4711 serves this home already; end it with Ctrl-C there"
    assert (tmp_path / FILE).read_text() == "4711"
    take(tmp_path, 4712).close()
    assert (tmp_path / FILE).read_text() == "4712"


def test_an_engine_that_outlives_its_server_keeps_the_lock(tmp_path: Path) -> None:
    """The memory is not free before it has gone."""
    lock = take(tmp_path, os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()]) as engine:
        lock.close()
        with pytest.raises(InputError):
            wait_until_free(tmp_path, limit=0.5)
        engine.kill()
        engine.wait()
        wait_until_free(tmp_path, limit=0.5)


def test_which_night_holds_the_home(tmp_path: Path) -> None:
    assert night_of(tmp_path) is None
    with hold(tmp_path, "the night 2026-11-20"):
        assert night_of(tmp_path) == "the night 2026-11-20"
    with hold(tmp_path, "nightschool prune"):
        assert night_of(tmp_path) is None


def test_one_that_has_not_said_its_name_yet_counts_as_a_night(tmp_path: Path) -> None:
    with hold(tmp_path, "the night 2026-11-20"):
        (tmp_path / "night.lock").write_text("")
        assert night_of(tmp_path) == "the night"
