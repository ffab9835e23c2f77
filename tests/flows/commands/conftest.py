"""The `nightschool` command in the tests' own process."""

import io
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conf.storage.home import Home
from flows import cli
from tests.flows.commands.command import Outcome, Run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that does not exist yet, on a disk with room, without settings of this machine's owner."""
    for name in ("PREFECT_API_URL", "NIGHTSCHOOL_DATA", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "away" / "school"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000_000_000))
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path / "away" / "school")


@pytest.fixture
def run(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command with these arguments; `given`: its standard input, None for a terminal."""

    def call(*arguments: str, given: bytes | None = None) -> Outcome:
        stdin = SimpleNamespace(isatty=lambda: given is None, buffer=io.BytesIO(given or b""))
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "argv", ["nightschool", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), printed.out, printed.err)

    return call
