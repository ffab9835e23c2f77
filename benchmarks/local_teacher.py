"""A teacher on this machine, for conf/full_day.yaml: `vllm serve` with a model that studied the same, or another one.

    python -m benchmarks.local_teacher [--model FOLDER_OR_HUB_ID] [--port 8001]

Serves it under the name given, on the loopback address alone, until Ctrl-C. Where none is named it is the starter model
after worked solutions that the student has not seen (benchmarks/starter.py; made once, in a few minutes), as
`studied-starter`.
"""

import argparse
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.starter import studied
from models.engine.environment import SERVER, server_environment
from tasks.workers import die_with_parent

NAME, PORT = "studied-starter", 8001
TOKENS = 2048  # of a question and its answer
LIMIT = 600  # seconds until it serves


def main() -> None:
    """Becomes the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="what to serve")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    name = options.model or NAME
    program = command(options.model or str(studied()), options.port, name)
    os.execve(program[0], program, server_environment(1.0))


@contextmanager
def served(model: Path, port: int, log: Path) -> Iterator[str]:
    """A server that lives as long as the `with`, its model called `NAME`; gives its base URL.

    Raises RuntimeError where it does not come up, or another one has the port.
    """
    _require_free(port)
    parent = os.getpid()
    with log.open("wb") as written:
        server = subprocess.Popen(
            command(str(model), port, NAME),
            env=server_environment(1.0),
            stdout=written,
            stderr=written,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),  # it ends its engine itself
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        with suppress(ProcessLookupError):  # it died by itself
            os.killpg(server.pid, signal.SIGKILL)  # its engine is a process of its own, and would live on
        server.wait()


def command(model: str, port: int, name: str) -> list[str]:
    """The server's command line."""
    options = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", name, "--enforce-eager"]
    return [*SERVER, "--model", model, *options, "--max-model-len", str(TOKENS)]


def _require_free(port: int) -> None:
    """Another server would answer in the place of ours."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise RuntimeError(f"port {port} is taken ({error.strerror}): end what serves there") from error


def _wait_for(health: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise RuntimeError(f"vllm serve did not come up: {log.read_text(errors='replace')[-2000:]}")


if __name__ == "__main__":
    main()
