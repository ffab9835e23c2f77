"""A measurement in a child process gives its figures back."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.machine.child import json_of


def test_the_last_line_is_the_result(tmp_path: Path) -> None:
    program = "import os, sys; print('warm-up'); print(int(os.environ['PACE']) * int(sys.argv[1]))"
    (tmp_path / "measuring.py").write_text(program)
    assert json_of("measuring", "3", environment={"PACE": "2", "PYTHONPATH": str(tmp_path)}) == 6


def test_a_failure_is_raised() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        json_of("no_such_module", environment={})
