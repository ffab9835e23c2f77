"""A day with the real vLLM and a tiny student, asked by OpenAI's own client."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from openai import APIStatusError, OpenAI

from conf.storage.locks import hold, wait_for_server
from flows.teaching.classroom import Classroom
from flows.web.address import free_port
from models.hf.loading import load_tokenizer, prompt_tokens
from tests.flows.serving.conftest import CONFIG, SETTINGS, School
from tests.flows.teaching.conftest import ScriptedEngine, ask
from tests.tasks.doubles.processes import gone_within, is_running
from tests.waiting import awaited

pytestmark = pytest.mark.full

QUESTION: Any = [{"role": "user", "content": "What is 2 + 2?"}]
LIMIT = 300.0  # seconds; an engine takes a minute to start


class Server:
    """The running command."""

    def __init__(self, log: Path) -> None:
        port, self.log = free_port(), log
        command = [sys.executable, "-m", "flows", "serve", "--port", str(port), *(f"--set={one}" for one in SETTINGS)]
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)
        self.url = f"http://127.0.0.1:{port}"
        self.client = OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)

    def wait_for(self, text: str, times: int = 1) -> None:
        awaited(lambda: self.log.read_text().count(text) >= times or self.process.poll() is not None, text, LIMIT)
        assert self.log.read_text().count(text) >= times, self.log.read_text()

    def answer(self) -> tuple[str, str | None]:
        """The model that answered, and its greedy answer."""
        found = self.client.chat.completions.create(
            model="daytime", messages=QUESTION, max_completion_tokens=8, temperature=0.0
        )
        return found.model, found.choices[0].message.content

    def processes(self) -> list[psutil.Process]:
        command = psutil.Process(self.process.pid)
        return [command, *command.children(recursive=True)]


@pytest.fixture
def server(request: pytest.FixtureRequest, school: School, tmp_path: Path) -> Iterator[Server]:
    """The command, and nothing of it afterwards."""
    if request.param == "taught":
        teach(school)
    running = Server(tmp_path / "serve.out")
    yield running
    everything = running.processes() if running.process.poll() is None else []
    running.process.kill()
    running.process.wait()
    for process in everything:
        if is_running(process.pid):
            process.kill()


def teach(school: School) -> None:
    """Teach the champion by day, with a real day copy."""
    champion = school.home.checkpoints / school.first.digest
    room = Classroom(school.home, CONFIG)
    assert room.open(ScriptedEngine(champion))

    async def taught() -> None:
        answers = (await ask(room, QUESTION[0]["content"]))["answers"]
        for answer in answers[:2] * 4:
            await room.teach("praise", answer["id"])
        await asyncio.gather(*room._tasks)

    asyncio.run(taught())
    room.close("", 0)


@pytest.mark.parametrize("server", ["taught"], indirect=True)
def test_what_was_taught_today_is_served_beside_the_champion(school: School, server: Server) -> None:
    server.wait_for("Also serving 'today'")
    server.wait_for("Ready: ")
    assert [model.id for model in server.client.models.list()] == [school.first.digest, "daytime", "today"]

    def first_token(model: str) -> float:
        """The log-probability of the greedy answer's first token."""
        found = server.client.chat.completions.create(
            model=model, messages=QUESTION, max_completion_tokens=4, temperature=0.0, logprobs=True
        )
        logprobs = found.choices[0].logprobs
        assert logprobs.content
        return logprobs.content[0].logprob

    champion, today = first_token("daytime"), first_token("today")
    assert abs(champion - today) > 0.03
    with ThreadPoolExecutor(8) as together:  # one batch of both
        both = [*together.map(first_token, ["daytime", "today"] * 4)]
    assert both == pytest.approx([champion, today] * 4, abs=0.005)


@pytest.mark.parametrize("server", ["untaught"], indirect=True)
def test_a_day(school: School, server: Server) -> None:
    """Answers with the digest of their model; the alias moves; the engine dies; a night comes; Ctrl-C."""
    first, second, client = school.first, school.second, server.client
    server.wait_for(f"version 1 ({first.digest}) is being loaded")
    with pytest.raises(APIStatusError) as refused:
        client.models.list()
    assert refused.value.status_code == 503
    server.wait_for(f"Ready: version 1 ({first.digest}) serves.")
    assert [model.id for model in client.models.list()] == [first.digest, "daytime"]
    five = client.chat.completions.create(model="daytime", messages=QUESTION, n=5, max_completion_tokens=8)
    assert five.model == first.digest
    assert len({choice.message.content for choice in five.choices}) > 1
    tokens = prompt_tokens(load_tokenizer(school.home.checkpoints / first.digest), QUESTION, CONFIG.student)
    assert five.usage.prompt_tokens == len(tokens)
    assert httpx.post(f"{server.url}/invocations", json={}).status_code == 404

    before = server.answer()
    assert before == server.answer()
    school.registry.promote(second.version)
    server.wait_for(ready := f"Ready: version 2 ({second.digest}) serves.")
    after = server.answer()
    assert (before[0], after[0]) == (first.digest, second.digest)
    assert after[1] != before[1]  # not the old answers under a new name

    psutil.Process(server.process.pid).children()[0].kill()
    server.wait_for(ready, times=2)
    assert server.answer() == after

    engine = server.processes()[1:]
    assert len(engine) > 1
    with hold(school.home.root, "the night 2026-11-21"):
        wait_for_server(school.home.root)
        assert not any(is_running(process.pid) for process in engine)
        with pytest.raises(APIStatusError, match="2026-11-21") as refused:
            client.models.list()
        assert refused.value.response.headers["retry-after"] == "60"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 130
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("server", ["untaught"], indirect=True)
def test_nothing_outlives_a_server_that_was_killed(school: School, server: Server) -> None:
    """No process, and no lock."""
    server.wait_for("Ready: ")
    everything = server.processes()
    server.process.kill()
    wait_for_server(school.home.root)
    assert gone_within(10, *(process.pid for process in everything))
