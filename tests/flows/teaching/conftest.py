"""A classroom whose answers are scripted; the day copy, the journal and the page are real."""

import asyncio
import itertools
import re
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home
from flows.teaching import day
from flows.teaching.classroom import Classroom
from tasks.teaching.writing import Written
from tests.tasks.doubles.workers import InProcessWorker

ANSWERS = ("7 + 5 = 12", "12", "75", "7", "5 + 7")
SETTINGS = ("learned_reward.owner_share=0", "engine.max_model_len=200", "teach.step_nats=1")  # nothing is held out


class ScriptedEngine:
    """In the engine's place: writes `texts`, over and over."""

    def __init__(self, champion: Path, texts: Sequence[str] = ANSWERS) -> None:
        self.champion, self.has_adapter, self.running = champion, False, True
        self.texts = itertools.cycle(texts)
        self.asked: list[tuple[list[dict[str, str]], list[bool]]] = []
        self.pause = 0.0  # seconds between two words
        self.longest = 10_000  # characters of a conversation

    def greedy_answers(self, questions: Sequence[str], max_tokens: int) -> list[str]:
        return ["7 " * 3] * len(questions)

    async def use_adapter(self, adapter: Path | None) -> None:
        assert adapter is None or {file.name for file in adapter.iterdir()} >= {"adapter_model.safetensors"}
        self.has_adapter = adapter is not None

    async def write(
        self,
        messages: list[dict[str, str]],
        by_day_copy: list[bool],
        max_tokens: int,
        stop: asyncio.Event,
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
                if stop.is_set():
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


@pytest.fixture
def school(tmp_path: Path, champion: Path, monkeypatch: pytest.MonkeyPatch) -> School:
    monkeypatch.setattr(day, "Worker", lambda *_: InProcessWorker())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # of the adapters
    return School(Home(tmp_path / "school"), champion)


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
