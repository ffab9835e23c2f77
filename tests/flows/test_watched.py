"""The watcher of a night's connections sees what it is there to see, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.watched import can_watch, watching

QUIET = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
socket.create_server(("::1", 0), family=socket.AF_INET6)
sys.exit(7)
"""
LOUD = """
import socket, time
server = socket.create_server(("0.0.0.0", 4321))
for family, to in ((socket.AF_INET, "198.51.100.7"), (socket.AF_INET6, "2001:db8:1::7")):
    with socket.socket(family) as probe:
        probe.settimeout(0.1)
        try:
            probe.connect((to, 443))
        except OSError:
            pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.sendto(b"hello", ("198.51.100.8", 9))
try:
    socket.getaddrinfo("statistics.example", 443)
except OSError:
    pass
time.sleep(0.6)
"""

pytestmark = pytest.mark.skipif(not can_watch(), reason="no network can be made here: it takes root, TUN, and ip")


def seen(tmp_path: Path, program: str) -> tuple[int, str]:
    notes = tmp_path / "seen"
    command = [*watching(notes), sys.executable, "-c", program]
    patience = {"RES_OPTIONS": "timeout:1 attempts:1"}
    done = subprocess.run(command, env=os.environ | patience, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, notes.read_text()


def test_what_stays_on_loopback_is_nobodys_business(tmp_path: Path) -> None:
    assert seen(tmp_path, QUIET) == (7, "")


def test_each_attempt_to_reach_others_or_to_be_reached_is_seen(tmp_path: Path) -> None:
    _, notes = seen(tmp_path, LOUD)
    assert "sent TCP to 198.51.100.7 port 443" in notes
    assert "sent TCP to 2001:db8:1::7 port 443" in notes
    assert "sent UDP to 198.51.100.8 port 9: hello" in notes
    assert "sent UDP to 192.0.2.53 port 53" in notes
    assert "statistics.example" in notes
    assert "listens on 00000000:10E1, which others can reach" in notes
