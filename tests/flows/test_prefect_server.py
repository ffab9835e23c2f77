"""The night's own Prefect server: it answers on loopback, and it is gone when the night is, however that ends."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.prefect_server import free_port, prefect_api, wait_until_ready

NIGHT = """
import sys, time
from pathlib import Path
from flows.prefect_server import free_port, start_server, wait_until_ready

folder = Path(sys.argv[1])
server, url = start_server(folder, free_port(), folder / "server.log")
wait_until_ready(server, url, folder / "server.log")
print(url, flush=True)
time.sleep(600)
"""


def processes_of(folder: Path) -> Iterator[int]:
    """Whoever runs with this folder as Prefect's home."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"PREFECT_HOME={folder}\0".encode() in environment:
            yield int(process.name)


def test_a_server_answers_and_dies_with_its_killed_parent(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", NIGHT, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as night:
        assert night.stdout is not None
        url = night.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (tmp_path / "server.log").read_text()
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            assert answer.read() == b"true"
        assert (tmp_path / "prefect.db").exists()
        assert list(processes_of(tmp_path))
        night.kill()
    limit = time.monotonic() + 2
    while list(processes_of(tmp_path)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not list(processes_of(tmp_path))
    with pytest.raises(OSError, match="refused|reset"):
        urllib.request.urlopen(f"{url}/health", timeout=2)


def test_a_server_that_ends_at_once_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as server:
        server.wait()
        with pytest.raises(RuntimeError, match="ended with code 3") as caught:
            wait_until_ready(server, f"http://127.0.0.1:{free_port()}/api", log)
    assert str(log) in str(caught.value)


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.prefect_server.START_LIMIT", 0.5)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as server:
        try:
            with pytest.raises(RuntimeError, match="did not answer within 0.5 s"):
                wait_until_ready(server, f"http://127.0.0.1:{free_port()}/api", tmp_path / "server.log")
        finally:
            server.kill()


def test_a_configured_server_is_used_as_it_is(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with (
        temporary_settings({PREFECT_API_URL: "http://elsewhere:4200/api"}),
        prefect_api(tmp_path / "school", None) as url,
    ):
        assert url == "http://elsewhere:4200/api"
    assert list(tmp_path.iterdir()) == []


def test_a_free_port_is_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
