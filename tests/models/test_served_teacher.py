"""The starter model as a teacher, behind `vllm serve`: what the protocol's stand-in in the other tests stands for."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from conf.lessons import TeacherConfig
from models.engine_environment import engine_environment
from models.starter import write_starter
from models.teacher import Question, ask
from rewards.arithmetic import Arithmetic

pytestmark = [pytest.mark.engine, pytest.mark.full]
LIMIT = 400  # seconds until it serves


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the starter model is served."""
    folder = tmp_path_factory.mktemp("served")
    write_starter(folder / "starter")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, **engine_environment(1.0)}
    del environment["VLLM_ENABLE_V1_MULTIPROCESSING"]  # a server wants its engine in a process of its own
    program = [str(Path(sys.executable).parent / "vllm"), "serve", str(folder / "starter"), "--enforce-eager"]
    options = ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "256", "--served-model-name", "starter"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*program, *options], env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, folder / "log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_for(health: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail(f"vllm serve did not come up: {log.read_text()[-2000:]}")


def test_it_answers_and_the_greedy_answers_are_the_same_again(url: str, tmp_path: Path) -> None:
    prompts = [Arithmetic().prompt(problem) for problem in Arithmetic(levels=["1"]).draw("teacher", 3)]
    asked = [Question((("user", prompt),), number) for prompt in prompts for number in range(2)]
    config = TeacherConfig(base_url=url, model="starter", max_tokens=32, timeout_seconds=120)
    first, again = (ask(asked, config, tmp_path / name) for name in ("first", "again"))
    assert (first.asked, first.failed, first.stopped) == (6, {}, None)
    assert all(first.answers)
    assert first.answers[::2] == again.answers[::2]
    assert 6 * 20 < first.tokens < 6 * 150


def test_a_model_that_it_does_not_serve(url: str, tmp_path: Path) -> None:
    config = TeacherConfig(base_url=url, model="another", retries=0)
    found = ask([Question((("user", "2 + 2?"),))], config, tmp_path)
    assert found.stopped == "HTTP 404"
