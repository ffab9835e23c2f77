"""A measurement in a child process gives its figures back and does not outlive its benchmark."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.machine.child import json_of
from tests.tasks.doubles.processes import gone_within, is_running

SLEEPER = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)"
PARENT = "import sys; from benchmarks.machine.child import json_of; json_of('sleeper', sys.argv[1], environment={})"


def test_the_last_line_is_the_result(tmp_path: Path) -> None:
    program = "import os, sys; print('warm-up'); print(int(os.environ['PACE']) * int(sys.argv[1]))"
    (tmp_path / "measuring.py").write_text(program)
    assert json_of("measuring", "3", environment={"PACE": "2", "PYTHONPATH": str(tmp_path)}) == 6


def test_a_failure_is_raised() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        json_of("no_such_module", environment={})


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_benchmark_leaves_no_child(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    note = tmp_path / "pid"
    os.mkfifo(note)
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[3]}:{tmp_path}"}
    with subprocess.Popen([sys.executable, "-c", PARENT, str(note)], env=environment) as parent:
        child = int(note.read_text())
        assert is_running(child)
        parent.send_signal(how)
    assert gone_within(5, child)
