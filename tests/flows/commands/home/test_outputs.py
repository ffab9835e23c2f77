"""The logs of a night, and a checkpoint's way out of the home."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conf.load import load_night, own_file
from conf.storage.home import Home
from flows.commands.evaluate import _digest
from models.hf.checkpoint import digest_folder
from tests.flows.commands.command import Run, refused
from tests.tasks.doubles.registry import School


def test_logs_are_those_of_the_last_night(run: Run, home: Home) -> None:
    assert "no logs yet" in refused(run("logs"))
    for date in ("2026-11-19", "2026-11-20"):
        (home.night(date) / "logs").mkdir(parents=True)
        for name in ("night", "trainer"):
            (home.night(date) / "logs" / f"{name}.log").write_text(f"begun\n{name} {date}\n")
    command = [sys.executable, "-m", "flows", "logs", "--lines=1"]
    (home.nights / "2026-11-20.gone" / "logs").mkdir(parents=True)  # `--fresh` was killed
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "night 2026-11-20"
    assert "begun" not in done.stdout


def test_logs_before_the_first_night(home: Home) -> None:
    (home.root / "prefect").mkdir(parents=True)
    (home.root / "prefect" / "deploy.log").write_text("no worker\n")
    command = [sys.executable, "-m", "flows", "logs"]
    assert "no worker" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["daytime", "1", "digest"])
def test_a_version_is_exported_by_any_of_its_names(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home_with_mlflow: Callable[[str], Home], name: str
) -> None:
    school = School(home := home_with_mlflow("school"))
    school.registry.model = load_night(own_file(home)).name
    digest = school.checkpoints[0].name
    school.registry.promote(school.register(0, "champion", 0.5).version)
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home.root))
    name = digest[:6] if name == "digest" else name
    assert _digest(name, home, load_night(own_file(home))) == (name if name == digest[:6] else digest)
    (tmp_path / "out.draft").mkdir()  # of somebody else
    assert run("export", "out", "--version", name).out == "out\n"
    assert (tmp_path / "out.draft").is_dir()
    assert "cannot be written" in refused(run("export", "out/config.json/deeper"))
    assert digest_folder(tmp_path / "out") == digest
    assert "exists already" in refused(run("export", "out"))
    assert "there is no version 9" in refused(run("export", "other", "--version", "9"))
