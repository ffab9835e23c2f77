"""`nightschool serve`: what it refuses, which version serves, and whole days with the real vLLM and a tiny student."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import torch
from openai import APIStatusError, OpenAI
from safetensors.torch import load_file, save_file

from conf.load import STARTER, load_night
from conf.storage.home import Home, InputError
from conf.storage.journal import Preference
from conf.storage.journal_file import read_file
from conf.storage.locks import hold, take_server_lock, wait_for_server
from flows.commands.serve import IMPATIENT, KEY, serve
from flows.serving.proxy import Gate
from flows.serving.supervisor import Serving
from flows.serving.vllm_server import EngineFailedError, template
from flows.web.address import LOOPBACK, free_port
from models.checkpoint import copy_companions, keep, write_lineage
from models.hf.loading import load_tokenizer, prompt_tokens
from tasks.registry.mlflow_registry import Registry, Version
from tasks.tracking import Tracking
from tests.models.support.tiny import write_tiny

SETTINGS = ["engine.max_model_len=128", "engine.kv_cache_gb=1", "engine.max_num_seqs=8", "student.system=Be brief."]
CONFIG = load_night(STARTER, SETTINGS)
QUESTION: Any = [{"role": "user", "content": "What is 2 + 2?"}]
SERVING = Path(__file__).parents[3] / "docs" / "serving.md"
LIMIT = 300.0  # seconds until something that was asked for has happened; an engine takes a minute to start


class School:
    """A home whose registry knows two tiny students; the first serves by day."""

    def __init__(self, home: Home) -> None:
        self.home, self.tracking = home, Tracking(home, CONFIG)
        night = home.night("2026-11-20")
        night.mkdir(parents=True)
        self.tracking.open_run(night, CONFIG, {})
        self.registry = Registry(self.tracking.client, CONFIG.name)
        draft = write_tiny(home.checkpoints / "draft", head_dim=32)
        write_lineage(draft, None)
        first = keep(draft, home.checkpoints)
        self.first, self.second = self.register(first), self.register(taught(first, 1))
        self.registry.promote(self.first.version)

    def register(self, checkpoint: Path) -> Version:
        tags = {"role": "candidate", "night": "2026-11-20", "parent": "", "accuracy": "0.5"}
        return self.registry.register(checkpoint, self.tracking.run_id, self.tracking.experiment_id, tags, {})


def taught(checkpoint: Path, seed: int) -> Path:
    """Another checkpoint, as if it had learned something."""
    draft = checkpoint.parent / "draft"
    copy_companions(checkpoint, draft)
    write_lineage(draft, checkpoint.name)
    noise = torch.Generator().manual_seed(seed)
    tensors = load_file(checkpoint / "model.safetensors")
    changed = {name: tensor + torch.randn(tensor.shape, generator=noise).to(tensor) for name, tensor in tensors.items()}
    save_file(changed, draft / "model.safetensors", {"format": "pt"})
    return keep(draft, checkpoint.parent)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets in this process does not stay."""
    for name, value in IMPATIENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> School:
    home = home_with_mlflow("school")
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home.root))
    return School(home)


class Day:
    """The running command."""

    def __init__(self, home: Home, port: int, log: Path) -> None:
        sets = [f"--set={setting}" for setting in SETTINGS]
        environment = os.environ | {"NIGHTSCHOOL_HOME": str(home.root), "PYTHONPATH": str(Path(__file__).parents[3])}
        self.url, self.log = f"http://127.0.0.1:{port}", log
        with log.open("wb") as output:
            command = [sys.executable, "-m", "flows", "serve", "--port", str(port), *sets]
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        self.client = OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not happened():
            assert time.monotonic() < end, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.2)

    def wait_for_line(self, line: str) -> None:
        self.wait_for(lambda: line in self.said().splitlines())

    def refusal(self) -> APIStatusError:
        with pytest.raises(APIStatusError) as caught:
            self.client.models.list()
        return caught.value

    def answers(self, count: int = 1, **settings: Any) -> tuple[str, list[str]]:
        """The model that answered, and its answers."""
        found = self.client.chat.completions.create(
            model="daytime", messages=QUESTION, n=count, max_completion_tokens=8, **settings
        )
        return found.model, [choice.message.content or "" for choice in found.choices]

    def processes(self) -> list[psutil.Process]:
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]


def lives(process: psutil.Process) -> bool:
    """Whether a process is more than a name that nobody has asked after."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def day(school: School, folder: Path) -> Iterator[Day]:
    """The command, and nothing of it afterwards."""
    found = Day(school.home, free_port(), folder / "serve.out")
    try:
        yield found
    finally:
        everything = found.processes() if found.process.poll() is None else []
        found.process.kill()
        found.process.wait()
        for process in everything:
            if lives(process):
                process.kill()


def run_lesson(url: str, home: Home) -> subprocess.CompletedProcess[str]:
    """Run the program of the docs as it stands there: a question, five answers, and the pick of the second."""
    (program,) = re.findall(r"```python\n(.+?)```", SERVING.read_text(), re.DOTALL)
    environment = os.environ | {"NIGHTSCHOOL_HOME": str(home.root), "PYTHONPATH": str(SERVING.parents[1])}
    command = [sys.executable, "-c", program.replace("http://127.0.0.1:8000", url)]
    given = "What is 2 + 2?\n1\n"
    return subprocess.run(
        command, input=given, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def only_pick(home: Home) -> Preference:
    """The only line of the journal."""
    (file,) = home.journal.iterdir()
    ((_, pick),), bad = read_file(file)
    assert not bad
    assert isinstance(pick, Preference)
    return pick


@pytest.fixture
def answers() -> Iterator[tuple[str, list[str]]]:
    """The URL of a server that gives these answers to every question."""
    given: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            choices = [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                for text in given
            ]
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": "cafe42", "choices": choices}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer((LOOPBACK, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://{LOOPBACK}:{server.server_port}", given
        server.shutdown()


def test_the_lesson_of_the_docs(answers: tuple[str, list[str]], tmp_path: Path) -> None:
    """The pick is in the journal; where all answers agree, one sentence says that there is nothing to pick."""
    url, given = answers
    given += ["4"] * 5
    agreed = run_lesson(url, Home(tmp_path))
    assert (agreed.returncode, agreed.stderr) == (1, "All answers agree, so there is nothing to pick.\n")
    assert not (tmp_path / "journal").exists()
    given[1:3] = ["5", "6"]
    assert run_lesson(url, Home(tmp_path)).returncode == 0
    pick = only_pick(Home(tmp_path))
    assert [message.content for message in pick.messages] == ["What is 2 + 2?"]
    assert (pick.responses, pick.chosen, pick.policy) == (["4", "5", "6"], 1, "cafe42")


@pytest.mark.engine
@pytest.mark.full
def test_a_day(school: School, tmp_path: Path) -> None:
    """Five answers with the digest of who gave them; rest while a night runs; and nothing left after Ctrl-C."""
    with day(school, tmp_path) as served:
        first = school.first
        served.wait_for_line(f"version 1 ({first.digest}) is being loaded")
        assert served.refusal().status_code == 503
        served.wait_for_line(f"Ready: version 1 ({first.digest}) serves.")
        assert [model.id for model in served.client.models.list()] == [first.digest, "daytime"]

        asked = served.client.chat.completions.create(model="daytime", messages=QUESTION, n=5, max_completion_tokens=8)
        assert asked.model == first.digest
        assert len({choice.message.content for choice in asked.choices}) > 1
        tokens = prompt_tokens(load_tokenizer(school.home.checkpoints / first.digest), QUESTION, CONFIG.student)
        assert asked.usage is not None
        assert asked.usage.prompt_tokens == len(tokens)
        assert httpx.post(f"{served.url}/invocations", json={}).status_code == 404

        assert run_lesson(served.url, school.home).returncode == 0
        assert only_pick(school.home).policy == first.digest
        everything = served.processes()
        assert len(everything) > 2
        with hold(school.home.root, "the night 2026-11-21"):
            wait_for_server(school.home.root)
            assert not any(map(lives, everything[1:]))
            refusal = served.refusal()
            assert "the night 2026-11-21 is running" in refusal.message
            assert refusal.response.headers["retry-after"] == "60"

        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(60) == 130
        assert "Traceback" not in served.said()


@pytest.mark.engine
@pytest.mark.full
def test_the_alias_moves(school: School, tmp_path: Path) -> None:
    """The other checkpoint's answers, not the old one's under a new name; a damaged one never serves."""
    first, second = school.first, school.second
    with day(school, tmp_path) as served:
        served.wait_for_line(f"Ready: version 1 ({first.digest}) serves.")
        model, before = served.answers(temperature=0.0)
        assert model == first.digest
        assert served.answers(temperature=0.0) == (model, before)

        school.registry.promote(second.version)
        served.wait_for_line(f"Ready: version 2 ({second.digest}) serves.")
        model, after = served.answers(temperature=0.0)
        assert model == second.digest
        assert after != before

        damaged = taught(school.home.checkpoints / first.digest, 2)
        third = school.register(damaged)
        (damaged / "model.safetensors").write_bytes(b"torn")
        school.registry.promote(third.version)
        served.wait_for(lambda: "version 2 goes on" in served.said())
        assert served.answers(temperature=0.0) == (second.digest, after)

        school.registry.promote(first.version)
        served.wait_for(lambda: served.said().count(f"version 1 ({first.digest}) serves") == 2)
        assert served.answers(temperature=0.0) == (first.digest, before)


ENGINE = """
import http.server, socketserver, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments): ...

socketserver.UnixStreamServer(sys.argv[1], Handler).serve_forever()
"""


def test_a_version_that_vllm_cannot_start_leaves_the_one_before_it_to_serve(
    school: School, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In vLLM's place a process that is healthy at once, or ends at once."""
    broken = {school.second.digest}

    def command(checkpoint: Path, _: Any, folder: Path) -> list[str]:
        program = "raise SystemExit('no such shape')" if checkpoint.name in broken else ENGINE
        return [sys.executable, "-c", program, str(folder / "socket")]

    monkeypatch.setattr("flows.serving.vllm_server.command", command)
    serving = Serving(school.home, CONFIG, school.registry, Gate(None), tmp_path)
    try:
        wanted = serving.step(school.first)
        assert serving.served == wanted == school.first
        school.registry.promote(school.second.version)
        wanted = serving.step(wanted)
        assert (serving.served, wanted) == (None, school.first)
        assert f"version 2 ({school.second.digest}) cannot serve: vLLM does not start; " in capsys.readouterr().out
        for _ in range(2):  # and it is not tried again and again
            wanted = serving.step(wanted)
            assert serving.served == wanted == school.first
        broken.add(school.first.digest)
        assert serving.engine is not None
        serving.engine.end()
        serving.step(wanted)  # it died
        with pytest.raises(EngineFailedError, match="no such shape"):
            serving.step(wanted)
    finally:
        serving.end()


@pytest.mark.engine
@pytest.mark.full
def test_what_dies(school: School, tmp_path: Path) -> None:
    """An engine that died is started again; nothing outlives a server that was killed, and no lock either."""
    serves = f"Ready: version 1 ({school.first.digest}) serves."
    with day(school, tmp_path) as served:
        served.wait_for_line(serves)
        psutil.Process(served.process.pid).children()[0].kill()
        served.wait_for(lambda: served.said().count(serves) == 2)
        served.answers()
        everything = served.processes()
        assert len(everything) > 2
        served.process.kill()
        wait_for_server(school.home.root)
        end = time.monotonic() + 10
        while any(map(lives, everything)):
            assert time.monotonic() < end
            time.sleep(0.2)


def refused(port: int = 0, host: str = LOOPBACK) -> str:
    with pytest.raises(InputError) as caught:
        serve(port or free_port(), host)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_before_the_first_night(
    home_with_mlflow: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "serve: no version of starter has the alias daytime yet: `nightschool night` makes the first"
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "nothing"))
    assert refused() == message
    assert not (tmp_path / "nothing").exists()
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home_with_mlflow("school").root))
    assert refused() == message


def test_a_checkpoint_that_cannot_serve(school: School) -> None:
    checkpoint = school.home.checkpoints / school.first.digest
    model = checkpoint / "model.safetensors"
    content = model.read_bytes()
    model.write_bytes(content[:-1])
    back = "go back with `nightschool rollback`, or promote another version"
    assert refused() == f"serve: {checkpoint} was changed or damaged, or is not here; {back}"
    adapter = school.home.checkpoints / "draft"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    adapter = keep(adapter, school.home.checkpoints)
    school.registry.promote(school.register(adapter).version)
    assert refused().startswith(f"serve: {adapter} is an adapter without its base's weights; ")


def test_a_port_that_is_taken(school: School) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        message = refused(port=port)
    assert message.startswith(f"--port: http://127.0.0.1:{port} is not available (Address already in use); name")


def test_a_second_server_is_refused_before_it_prints_anything(
    school: School, capsys: pytest.CaptureFixture[str]
) -> None:
    with take_server_lock(school.home.root, 4711):
        home = school.home.root
        assert refused() == f"{home}: process 4711 serves this home already; end it with Ctrl-C there"
    assert capsys.readouterr().out == ""


def test_an_address_for_others_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipaddress.IPv4Address.is_loopback", False)
    assert "first set a password (in ASCII) in NIGHTSCHOOL_SERVE_KEY" in refused(host="127.0.0.1")


def test_a_registry_that_does_not_answer(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # as every command sets it
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
    assert refused().startswith("MLflow's server does not answer at ")
    assert [os.environ[name] for name in IMPATIENT] == ["0", "10"]  # asked once, and soon again


def test_the_template_has_the_students_system_text_in_front(school: School, tmp_path: Path) -> None:
    """Rendered by transformers: what the server puts in front is what the night puts in front, whatever is in it."""
    checkpoint = school.home.checkpoints / school.first.digest
    tokenizer = load_tokenizer(checkpoint)
    for system in ("", "Be brief.", 'Say "ä\\n" {{ twice }} %}\nand stop'):
        student = CONFIG.student.model_copy(update={"system": system})
        rendered: Any = tokenizer.apply_chat_template(
            QUESTION, chat_template=template(checkpoint, student), add_generation_prompt=True, tokenize=False
        )
        night: Any = tokenizer.apply_chat_template(
            [{"role": "system", "content": system}, *QUESTION], add_generation_prompt=True, tokenize=False
        )
        assert rendered == night
    plain = CONFIG.student.model_copy(update={"system": None})
    assert template(checkpoint, plain) == tokenizer.chat_template
