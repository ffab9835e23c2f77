"""`nightschool serve`: what it refuses, which version serves, and the lesson of the docs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.storage.home import Home
from conf.storage.journal_file import read_file
from flows.commands.serve import serve
from flows.serving.proxy import Gate
from flows.serving.supervisor import Serving
from flows.serving.vllm_server import EngineFailedError, EngineServer, template
from flows.web.address import LOOPBACK, free_port
from models.hf.loading import load_tokenizer
from tests.docs.pages import blocks
from tests.flows.serving.conftest import CONFIG, School
from tests.models.support.chat_server import Reply, chat_server
from tests.refusal import refusal


def run_lesson(url: str, home: Home) -> subprocess.CompletedProcess[str]:
    """Run the program of the docs as it is printed there: a question, five answers, and the pick of the second."""
    (program,) = [block.text for block in blocks("python") if "import OpenAI" in block.text and "append(" in block.text]
    environment = os.environ | {"NIGHTSCHOOL_HOME": str(home.root)}
    command = [sys.executable, "-c", program.replace("http://127.0.0.1:8000/v1", url)]
    given = "What is 2 + 2?\n1\n"
    return subprocess.run(
        command, input=given, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_lesson_of_the_docs(tmp_path: Path) -> None:
    """The pick is in the journal; where all answers agree, one sentence says that there is nothing to pick."""
    given = ["4"] * 5

    def answer(_: dict[str, Any]) -> Reply:
        choices = [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": one}} for one in given
        ]
        completion = {"id": "1", "object": "chat.completion", "created": 0, "model": "cafe42", "choices": choices}
        return Reply(json.dumps(completion).encode())

    with chat_server(answer) as server:
        agreed = run_lesson(server.url, Home(tmp_path))
        assert (agreed.returncode, agreed.stderr) == (1, "All answers agree, so there is nothing to pick.\n")
        assert not (tmp_path / "journal").exists()
        given[1:3] = ["5", "6"]
        assert run_lesson(server.url, Home(tmp_path)).returncode == 0
    (file,) = (tmp_path / "journal").iterdir()
    ((_, pick),), bad = read_file(file)
    assert not bad
    assert [message.content for message in pick.messages] == ["What is 2 + 2?"]
    assert (pick.responses, pick.chosen, pick.policy) == (["4", "5", "6"], 1, "cafe42")


ENGINE = """
import http.server, socketserver, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments): ...

socketserver.UnixStreamServer(sys.argv[1], Handler).serve_forever()
"""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """In vLLM's place a process that is healthy at once; of these digests one that ends at once."""
    digests: set[str] = set()

    def command(checkpoint: Path, _: Any, folder: Path, today: Path | None) -> list[str]:
        program = "raise SystemExit('no such shape')" if checkpoint.name in digests else ENGINE
        return [sys.executable, "-c", program, str(folder / "socket")]

    monkeypatch.setattr("flows.serving.vllm_server.command", command)
    return digests


@pytest.fixture
def serving(school: School, tmp_path: Path, broken: set[str]) -> Iterator[Serving]:
    gate = Gate(None)

    def start(checkpoint: Path, holds: Sequence[int]) -> EngineServer:
        return EngineServer(checkpoint, CONFIG, tmp_path, tmp_path / "serve.log", holds)

    def opened(engine: EngineServer) -> bool:
        gate.open(engine.socket)
        return True

    server = Serving(school.home, CONFIG, gate, start, opened)
    yield server
    server.end()


def serves(serving: Serving) -> str | None:
    return serving.served and serving.served.digest


def test_a_damaged_version_never_serves_and_a_dead_engine_is_started_again(
    school: School, serving: Serving, broken: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    serving.step()
    (school.home.checkpoints / school.second.digest / "model.safetensors").write_bytes(b"torn")
    school.registry.promote(school.second.version)
    serving.step()
    assert serves(serving) == school.first.digest
    assert "version 2 is damaged or missing; version 1 still serves" in capsys.readouterr().out
    serving.engine.end()
    serving.step()
    assert serves(serving) is None
    serving.step()
    assert serves(serving) == school.first.digest
    broken.add(school.first.digest)
    serving.engine.end()
    serving.step()
    with pytest.raises(EngineFailedError, match="no such shape"):
        serving.step()


def refused(host: str = LOOPBACK) -> str:
    return refusal(serve, free_port(), host)


def test_before_the_first_night(
    home_with_mlflow: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "no version of starter has the alias daytime yet: `nightschool night` makes the first"
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "nothing"))
    assert refused() == message
    assert not (tmp_path / "nothing").exists()
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home_with_mlflow("school").root))
    assert refused() == message


def test_a_checkpoint_that_cannot_serve(school: School) -> None:
    checkpoint = school.home.checkpoints / school.first.digest
    (checkpoint / "model.safetensors").write_bytes(b"torn")
    back = "go back with `nightschool rollback`, or promote another version"
    assert refused() == f"{checkpoint} was changed or damaged, or is not here; {back}"


def test_an_address_for_others_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipaddress.IPv4Address.is_loopback", False)
    assert "first set a password (in ASCII) in NIGHTSCHOOL_SERVE_KEY" in refused("127.0.0.1")


def test_the_template_has_the_students_system_text_in_front(school: School) -> None:
    """Rendered by transformers, it is what the night renders, whatever is in the text."""
    checkpoint = school.home.checkpoints / school.first.digest
    tokenizer = load_tokenizer(checkpoint)
    question = [{"role": "user", "content": "What is 2 + 2?"}]
    for system in ("", "Be brief.", 'Say "ä\\n" {{ twice }} %}\nand stop'):
        served = template(checkpoint, CONFIG.student.model_copy(update={"system": system}))
        rendered = tokenizer.apply_chat_template(question, chat_template=served, tokenize=False)
        whole = [{"role": "system", "content": system}, *question]
        assert rendered == tokenizer.apply_chat_template(whole, tokenize=False)
    assert template(checkpoint, CONFIG.student.model_copy(update={"system": None})) == tokenizer.chat_template
