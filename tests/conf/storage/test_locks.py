"""One night at a time on one home, and no lock that outlives its holder."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from conf.storage.locks import NightRunningError, hold, refuse_second

HOLDER = """
import sys, time
from pathlib import Path
from conf.storage.locks import hold

with hold(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""

PARENT = """
import subprocess, sys, time
from pathlib import Path
from conf.storage.locks import hold

if __name__ == "__main__":
    with hold(Path(sys.argv[1]), "the night 2026-11-20"):
        orphan = subprocess.Popen(["sleep", "600"], close_fds=False, start_new_session=True)
        print(orphan.pid, flush=True)
        time.sleep(600)
"""


@contextmanager
def holder(root: Path, who: str = "the night 2026-11-20") -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the home."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", HOLDER, str(root), who]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_in_the_name_of_the_first(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        who = f"the night 2026-11-20 is running (process {other.pid})"
        said = f"{tmp_path}: {who}; wait for it, or end it with Ctrl-C there"
        with pytest.raises(NightRunningError) as caught, hold(tmp_path, "the night 2026-11-21"):
            pass
        assert str(caught.value) == said
        with pytest.raises(NightRunningError) as caught:
            refuse_second(tmp_path)
        assert str(caught.value) == said


def test_the_lock_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        other.kill()
        other.wait()
        refuse_second(tmp_path)
        with hold(tmp_path, "the night 2026-11-21"):
            assert '"the night 2026-11-21"' in (tmp_path / "night.lock").read_text()


def test_an_orphan_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Not even one that was told to inherit everything."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, str(script), str(tmp_path / "school")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        orphan = int(parent.stdout.readline())
        with pytest.raises(NightRunningError):
            refuse_second(tmp_path / "school")
        parent.kill()
    try:
        os.kill(orphan, 0)  # it lives on
        with hold(tmp_path / "school", "the next"):
            pass
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_the_holder_itself_may_come_again(tmp_path: Path) -> None:
    with hold(tmp_path, "the night 2026-11-19"):
        refuse_second(tmp_path)
        with hold(tmp_path, "inner"):
            pass
        with holder_is_refused(tmp_path):
            pass
    with holder(tmp_path):
        pass


@contextmanager
def holder_is_refused(root: Path) -> Iterator[None]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", HOLDER, str(root), "the night 2026-11-20"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the night 2026-11-19 is running" in done.stderr
    yield


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(LookupError), hold(tmp_path, "one"):
        raise LookupError
    with holder(tmp_path):
        pass


def take(root: Path) -> None:
    with hold(root, "the night 2026-11-21"):
        pass


@pytest.mark.parametrize("meet", [refuse_second, take])
def test_who_prunes_is_waited_for(tmp_path: Path, meet: Callable[[Path], None]) -> None:
    """A worker's start at 01:00 that was refused would be lost until the next night."""
    with holder(tmp_path, "nightschool prune") as other, ThreadPoolExecutor(1) as pool:
        met = pool.submit(meet, tmp_path)
        with pytest.raises(TimeoutError):
            met.result(1.0)
        other.kill()
        met.result(60)


@pytest.mark.parametrize("meet", [refuse_second, take])
def test_who_prunes_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meet: Callable[[Path], None]
) -> None:
    monkeypatch.setattr("conf.storage.locks.PRUNING", 0.2)
    with holder(tmp_path, "nightschool prune"), pytest.raises(NightRunningError, match="nightschool prune is running"):
        meet(tmp_path)


def test_to_ask_writes_nothing(tmp_path: Path) -> None:
    refuse_second(tmp_path)
    refuse_second(tmp_path / "school")
    (tmp_path / "file").write_text("")
    refuse_second(tmp_path / "file" / "school")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_holder_that_has_not_said_its_name_yet(tmp_path: Path) -> None:
    with holder(tmp_path):
        (tmp_path / "night.lock").write_text("")
        with pytest.raises(NightRunningError, match="another night is just starting"):
            refuse_second(tmp_path)


def test_the_home_is_made_for_its_owner_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with hold(tmp_path / "school", "the night 2026-11-20"):
        assert stat.S_IMODE((tmp_path / "school").stat().st_mode) == 0o700
    assert caplog.text == ""
    (tmp_path / "school").chmod(0o755)
    with hold(tmp_path / "school", "the night 2026-11-20"):
        assert stat.S_IMODE((tmp_path / "school").stat().st_mode) == 0o700
    assert caplog.text.count(f"{tmp_path}/school: others could enter this home; from now on its owner alone can") == 1
