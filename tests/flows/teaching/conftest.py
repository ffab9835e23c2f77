"""A classroom whose answers are scripted; the day copy, the journal and the page are real."""

import asyncio
import itertools
import json
import re
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home
from conf.storage.journal_file import read_file
from flows.serving.proxy import listening
from flows.teaching import day
from flows.teaching.app import make_app
from flows.teaching.classroom import Classroom
from flows.web.address import HERE, free_port, listener
from tasks.teaching.writing import Written
from tests.flows.serving.conftest import School as Served
from tests.tasks.doubles.workers import InProcessWorker

TOKEN = "secret"
ANSWERS = ("7 + 5 = 12", "12", "75", "7", "5 + 7")
SETTINGS = ("learned_reward.owner_share=0", "engine.max_model_len=200", "teach.step_nats=1")  # nothing is held out


class ScriptedEngine:
    """In the engine's place: writes `texts`, over and over."""

    def __init__(self, champion: Path, texts: Sequence[str] = ANSWERS) -> None:
        self.champion, self.has_adapter, self.running = champion, False, True
        self.stop, self.texts = asyncio.Event(), itertools.cycle(texts)
        self.asked: list[tuple[list[dict[str, str]], list[bool]]] = []
        self.pause = 0.0  # seconds between two words
        self.longest = 10_000  # characters of a conversation

    async def use_adapter(self, adapter: Path | None) -> None:
        assert adapter is None or {file.name for file in adapter.iterdir()} >= {"adapter_model.safetensors"}
        self.has_adapter = adapter is not None

    async def write(
        self,
        messages: list[dict[str, str]],
        by_day_copy: list[bool],
        temperature: float = 1.0,
        begun: str = "",
    ) -> AsyncGenerator[tuple[int, str] | list[Written]]:
        if sum(len(message["content"]) for message in messages) > self.longest:
            raise ValueError("the conversation has too many tokens: shorten it")
        self.asked.append(([*messages], by_day_copy))
        await asyncio.to_thread(lambda: None)  # the real engine's call needs a thread
        whole = [next(self.texts).removeprefix(begun) for _ in by_day_copy]
        written = [""] * len(whole)
        for number, text in enumerate(whole):
            for piece in re.findall(r" *[^ ]+", text):
                if self.stop.is_set():
                    break
                written[number] += piece
                yield number, piece
                await asyncio.sleep(self.pause)
        yield [Written(text, text == end) for text, end in zip(written, whole, strict=True)]


@pytest.fixture(scope="session")
def champion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.models.support.tiny import write_tiny

    return write_tiny(tmp_path_factory.mktemp("champions") / "cafe")


class School:
    """A home with a classroom, which can be opened again and again, as after a crash."""

    def __init__(self, home: Home, champion: Path) -> None:
        self.home, self.champion = home, champion
        self.engine = ScriptedEngine(champion)

    def open(self, *settings: str, texts: Sequence[str] = ANSWERS) -> Classroom:
        self.engine = ScriptedEngine(self.champion, texts)
        config: NightConfig = load_night(STARTER, [*SETTINGS, *settings])
        room = Classroom(self.home, config)
        room.open(self.engine)
        return room

    @property
    def lines(self) -> list[Any]:
        """The entries of the journal."""
        return [entry for file in sorted(self.home.journal.glob("*")) for _, entry in read_file(file)[0]]


@pytest.fixture
def school(tmp_path: Path, champion: Path, monkeypatch: pytest.MonkeyPatch) -> School:
    monkeypatch.setattr(day, "Worker", lambda *_: InProcessWorker())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # of the adapters
    return School(Home(tmp_path / "school"), champion)


@pytest.fixture
def served(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> Served:
    """A home with a tiny champion in its registry."""
    home = home_with_mlflow("school")
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home.root))
    return Served(home)


@contextmanager
def page_of(room: Classroom, **options: Any) -> Iterator[str]:
    """Serve a classroom's page, which `TOKEN` opens. Yields its address."""
    port = free_port()
    with listener(HERE, port) as taken, listening(make_app(room, port, TOKEN, **options), HERE, taken):
        yield HERE.url(port)


def ask_page(client: httpx.Client, text: str = "7 + 5?") -> list[dict[str, Any]]:
    """Ask as the page does, and return the answers."""
    response = client.post("/api/ask", json={"text": text})
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    name, data = response.text.strip().split("\n\n")[-1].split("\n")
    assert name == "event: done", data
    return json.loads(data.removeprefix("data: "))["answers"]


Do = Callable[[Awaitable[Any]], Any]


@pytest.fixture
def do() -> Iterator[Do]:
    """Runs what is awaited, all of a test in one loop."""
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


async def ask(room: Classroom, text: str = "7 + 5?", **how: Any) -> dict[str, Any]:
    """Ask, and return what `done` says."""
    events = [event async for event in room.ask(text, **how)]
    assert events[-1][0] == "done"
    return events[-1][1]


async def settled(room: Classroom) -> list[dict[str, Any]]:
    """Wait for what is learned in the background, and return the lessons."""
    await asyncio.gather(*room._tasks)
    return room.state()["lessons"]
