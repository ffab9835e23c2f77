"""What the commands that serve refuse, and the unit for machines that reboot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conf.storage.home import InputError
from flows.orchestration import worker
from flows.orchestration.worker import PROJECT

UNIT = PROJECT / "docs" / "systemd" / "nightschool.service"


def test_without_a_checkout_there_is_nothing_to_deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "DEPLOYMENTS", tmp_path / "prefect.yaml")
    with pytest.raises(InputError) as caught:
        worker.require_project()
    assert str(caught.value) == (
        f"{tmp_path / 'prefect.yaml'}: no such file; the schedule runs from a checkout of Night school, installed by "
        "make setup"
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    def complaints(text: str) -> str:
        unit = tmp_path / UNIT.name
        unit.write_text(text.replace("%h/night-school/.venv/bin/nightschool services", "/bin/true"))
        command = ["systemd-analyze", "verify", "--user", str(unit)]
        environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert complaints(UNIT.read_text()) == ""
    assert "Failed to parse OOM policy" in complaints(UNIT.read_text().replace("OOMPolicy=", "OOMPolicy=no"))
