"""A local teacher for conf/full_day.yaml: `vllm serve` with another model, or with a starter that was trained further.

    python -m benchmarks.local_teacher [--model FOLDER_OR_HUB_ID] [--port 8001]

Serves the model under its own name until Ctrl-C, on the loopback address only. The default is `studied-starter`: the
starter fine-tuned on worked solutions that the student has not seen. The first call makes it, in a few minutes.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import torch

from benchmarks.inputs.options import options
from benchmarks.inputs.starter import studied
from flows.run.child import Child, end_child, start_child
from models.engine.environment import SERVER, server_environment
from models.hf.hardware import GIB

NAME, PORT = "studied-starter", 8001
TOKENS = 2048  # of a question and its answer together
LIMIT = 600  # seconds until it serves


def main() -> None:
    """Replace this process with the server."""
    given = options(__doc__, {"--model": "", "--port": PORT})
    program = command(given.model or str(studied()), given.port, given.model or NAME)
    os.execve(program[0], program, server_environment())


@contextmanager
def served(model: Path, port: int, log: Path) -> Iterator[str]:
    """Serve a model under the name `NAME` while the block runs. Yields the base URL.

    Raises RuntimeError if the server does not start.
    """
    # SIGTERM, because a killed server would leave its engine behind as an orphan
    server = start_child(command(str(model), port, NAME), server_environment(), log, signal.SIGTERM)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        end_child(server)


def command(model: str, port: int, name: str) -> list[str]:
    """Return the server's command line."""
    where = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", name]
    cache = [] if torch.cuda.is_available() else ["--kv-cache-memory-bytes", str(GIB)]
    return [*SERVER, "--model", model, *where, "--enforce-eager", "--max-model-len", str(TOKENS), *cache]


def _wait_for(health: str, server: Child, log: Path) -> None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and server.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(health).is_success:
                return
        time.sleep(1)
    raise RuntimeError(f"vllm serve did not start: {log.read_text(errors='replace')[-2000:]}")


if __name__ == "__main__":
    main()
