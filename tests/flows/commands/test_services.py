"""`nightschool ui` and `services`: what they refuse, and the systemd unit for machines that reboot."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest

from conf.storage.home import Home
from flows.orchestration.server import ServerError
from flows.orchestration.worker import PROJECT
from flows.web.address import free_port
from tests.flows.commands.command import Run, refused

UNIT = PROJECT / "docs" / "systemd" / "nightschool.service"


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


@pytest.mark.parametrize("command", ["ui", "services"])
def test_every_address_or_a_taken_port_is_refused(run: Run, home: Home, command: str) -> None:
    """What listens on the port might be taken for the home's own server."""
    assert refused(run(command, "--host", "0.0.0.0")).startswith("--host: 0.0.0.0 means every address; name the one")
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        for option, other in (("--prefect-port", "--mlflow-port"), ("--mlflow-port", "--prefect-port")):
            line = refused(run(command, option, str(taken), other, str(free_port())))
            assert line.startswith(f"{option}: http://127.0.0.1:{taken} is not available (Address already in use); ")
    assert not home.root.exists()


def test_services_say_what_is_wrong_in_the_homes_configuration(run: Run, home: Home) -> None:
    home.make_private()
    home.config_file.write_text("budget_minutes: soon\n")
    assert "budget_minutes" in refused(run("services"))
    assert run("ui", "--prefect-port", "70000").code == 2


def test_a_server_that_ends_is_one_line(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ServerError("Prefect's server ended with code 3; its log: server.log")
    monkeypatch.setattr("flows.web.pages.pages", Mock(side_effect=error))
    assert run("ui") == (1, "", "nightschool: Prefect's server ended with code 3; its log: server.log\n")
