"""A local teacher for conf/full_day.yaml: `vllm serve` with another model, or with a starter that was trained further.

    python -m benchmarks.local_teacher [--model FOLDER_OR_HUB_ID] [--port 8001]

Serves the model under its own name until Ctrl-C, on the loopback address only. The default is `studied-starter`: the
starter fine-tuned on worked solutions that the student has not seen. The first call makes it, in a few minutes.
"""

import argparse
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import torch

from benchmarks.inputs.starter import studied
from flows.run.child import Child, end_child, start_child
from models.engine.environment import SERVER, server_environment
from models.hf.hardware import GIB

NAME, PORT = "studied-starter", 8001
TOKENS = 2048  # of a question and its answer together
LIMIT = 600  # seconds until it serves


def main() -> None:
    """Replace this process with the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a folder or an id of the hub")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    name = options.model or NAME
    program = command(options.model or str(studied()), options.port, name)
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
    options = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", name, "--enforce-eager"]
    cache = [] if torch.cuda.is_available() else ["--kv-cache-memory-bytes", str(GIB)]
    return [*SERVER, "--model", model, *options, "--max-model-len", str(TOKENS), *cache]


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
