"""One night and one server at a time on one home, and no lock that outlives its holder."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conf.storage.home import Home, InputError
from conf.storage.locks import (
    SERVER_LOCK,
    AliasesHeldError,
    NightRunningError,
    alias_lock,
    hold,
    refuse_if_night_running,
    running_night,
    take_server_lock,
    wait_for_server,
)
from tests.conf.storage.lock_holder import command, holder
from tests.refusal import refusal

PARENT = """
import subprocess, sys, time
from pathlib import Path
from conf.storage.locks import hold

with hold(Path(sys.argv[1]), "the night 2026-11-20"):
    orphan = subprocess.Popen(["sleep", "600"], close_fds=False, start_new_session=True)
    print(orphan.pid, flush=True)
    time.sleep(600)
"""


def take(root: Path) -> None:
    with hold(root, "the night 2026-11-21"):
        pass


@pytest.mark.parametrize("meet", [refuse_if_night_running, take])
def test_a_second_process_is_refused_and_the_first_named(tmp_path: Path, meet: Callable[[Path], None]) -> None:
    with holder(tmp_path) as other:
        who = f"the night 2026-11-20 is running (process {other.pid})"
        line = refusal(meet, tmp_path, kind=NightRunningError)
        assert line == f"{tmp_path}: {who}; wait for it, or end it with Ctrl-C in its terminal"


def test_the_lock_of_a_killed_holder_is_free_and_no_orphan_keeps_it(tmp_path: Path) -> None:
    """Not even one that inherits every open file."""
    arguments = [sys.executable, "-c", PARENT, str(tmp_path / "school")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        orphan = int(parent.stdout.readline())
        with pytest.raises(NightRunningError):
            refuse_if_night_running(tmp_path / "school")
        parent.kill()
    try:
        os.kill(orphan, 0)  # it is still alive
        take(tmp_path / "school")
        assert json.loads((tmp_path / "school" / "night.lock").read_text())["who"] == "the night 2026-11-21"
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_the_holder_may_take_the_lock_again(tmp_path: Path) -> None:
    with hold(tmp_path, "the night 2026-11-19"):
        refuse_if_night_running(tmp_path)
        with hold(tmp_path, "inner"):
            pass
        done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False)
        assert (done.returncode, "the night 2026-11-19 is running" in done.stderr) == (1, True)


@pytest.mark.parametrize("meet", [refuse_if_night_running, take])
def test_prune_is_waited_for(tmp_path: Path, meet: Callable[[Path], None]) -> None:
    """A worker's start at 01:00 that was refused would be lost until the next night."""
    with holder(tmp_path, "nightschool prune") as other, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(meet, tmp_path)
        with pytest.raises(TimeoutError):
            waiting.result(1.0)
        other.kill()
        waiting.result(60)


@pytest.mark.parametrize("meet", [refuse_if_night_running, take])
def test_a_prune_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meet: Callable[[Path], None]) -> None:
    monkeypatch.setattr("conf.storage.locks.UPKEEP_SECONDS", 0.2)
    with holder(tmp_path, "nightschool prune"), pytest.raises(NightRunningError, match="nightschool prune is running"):
        meet(tmp_path)


def test_looking_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path, tmp_path / "school", tmp_path / "file" / "school"):
        refuse_if_night_running(root)
        wait_for_server(root, limit=0.0)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_holder_without_a_name_yet_counts_as_a_night(tmp_path: Path) -> None:
    with holder(tmp_path):
        (tmp_path / "night.lock").write_text("")
        assert running_night(tmp_path) == "the night"
        with pytest.raises(NightRunningError, match="a night is just starting"):
            refuse_if_night_running(tmp_path)


def test_the_home_is_made_for_its_owner_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    take(tmp_path / "school")
    assert stat.S_IMODE((tmp_path / "school").stat().st_mode) == 0o700
    assert caplog.text == ""
    (tmp_path / "school").chmod(0o755)
    take(tmp_path / "school")
    assert caplog.text.count(f"{tmp_path}/school: others could enter this home; from now on only its owner can") == 1


def test_a_night_waits_until_the_server_is_done(tmp_path: Path) -> None:
    lock, ended = take_server_lock(tmp_path, 4711), threading.Event()

    def end() -> None:
        time.sleep(0.3)
        ended.set()
        lock.close()

    threading.Thread(target=end).start()
    wait_for_server(tmp_path, limit=20.0)
    assert ended.is_set()
    take_server_lock(tmp_path, 4712).close()  # waiting does not keep the lock


def test_a_server_that_does_not_end_is_named(tmp_path: Path) -> None:
    with take_server_lock(tmp_path, 4711):
        assert refusal(wait_for_server, tmp_path, 0.5) == (
            f"{tmp_path}: process 4711 (nightschool serve or teach) does not make room for the night; "
            "end it with Ctrl-C in its terminal, and run the night again"
        )


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    with take_server_lock(tmp_path, 4711):
        line = refusal(take_server_lock, tmp_path, 4712)
    assert line == f"{tmp_path}: process 4711 serves this home already; end it with Ctrl-C in its terminal"
    take_server_lock(tmp_path, 4712).close()
    assert (tmp_path / SERVER_LOCK).read_text() == "4712"


def test_an_engine_that_outlives_its_server_keeps_the_lock(tmp_path: Path) -> None:
    """Its memory is not free before it has ended."""
    lock = take_server_lock(tmp_path, os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()]) as engine:
        lock.close()
        with pytest.raises(InputError):
            wait_for_server(tmp_path, limit=0.5)
        engine.kill()
        engine.wait()
        wait_for_server(tmp_path, limit=0.5)


def test_the_lock_on_the_aliases_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `rollback` may hang, or be stopped with Ctrl-Z."""
    monkeypatch.setattr("conf.storage.locks.ALIAS_SECONDS", 0.2)
    with alias_lock(Home(tmp_path)), pytest.raises(AliasesHeldError, match="`nightschool promote` or `rollback` does"):
        alias_lock(Home(tmp_path)).__enter__()
