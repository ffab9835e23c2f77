"""The owner's channels in their order, on the real stages and a tiny student."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.feedback import channels, learn_feedback
from models.checkpoint import keep, write_lineage
from models.rollout import Rollout
from tasks.rollouts import engine_process
from tasks.stage import MANIFEST, Artifact
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.training import trainer_process
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

DATE = "2026-11-20"
ASKED = json.dumps([{"role": "user", "content": "Hi"}])
SETTINGS = ["engine.max_model_len=1000", "exam={target: {benchmark: arithmetic, levels: ['1'], problems: 20}}"]
LINES: dict[str, Any] = {
    "corrections": (CORRECTIONS, [{"messages": ASKED, "response": "Bad.", "correction": "Fine."}]),
    "words": (WORDS, []),
    "feedback": (FEEDBACK, [{"messages": ASKED, "response": "Well.", "value": 1.0}]),
    "preferences": (
        PREFERENCES,
        [{"messages": ASKED, "responses": json.dumps(["Fine.", "So so."]), "chosen": 0, "policy": "x"}],
    ),
}


class Engine:
    """An engine whose answers are all wrong; `examined` are the digests of the exams' checkpoints."""

    running = True

    def __init__(self) -> None:
        self.examined: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if function is engine_process.sample:
            checkpoint, _, prompts, *_ = arguments
            self.examined.append(checkpoint.name)
            return [[Rollout("", n, 0, p, [1], [-1.0], [True], "stop", "", "x")] for n, p in enumerate(prompts)], {}
        return None


@pytest.fixture
def night(tmp_path: Path, prefect_server: Path) -> Any:
    trainer_process._trainer, trainer_process._held = None, None
    home = Home(tmp_path / "school")
    draft = write_tiny(home.checkpoints / "new")
    write_lineage(draft, None)
    base = keep(draft, home.checkpoints)

    def begin(*settings: str) -> tuple[Night, Artifact, Path]:
        config = load_night(STARTER, [*SETTINGS, *settings])
        night = Night(home, DATE, config)
        night.engine, night.trainer = Engine(), InProcessWorker()  # pyright: ignore
        night.folder.mkdir(parents=True, exist_ok=True)
        folder = night.folder / "freeze_journal"
        day = Artifact(folder=folder, digest="day") if folder.exists() else write_stage(folder, LINES)
        return night, day.model_copy(update={"digest": "day"}), base

    return begin


def run(night: Night, day: Artifact, base: Path) -> Path:
    @flow
    def lessons() -> Path:
        return learn_feedback(night, day, base, ())

    return lessons()


def digest(night: Night, channel: str) -> str:
    """The checkpoint after a channel."""
    return (night.folder / "lessons" / channel / "checkpoint.txt").read_text()


def test_each_channel_goes_on_from_the_one_before_it(night: Any) -> None:
    one, day, base = night("preference_learning=direct")
    last = run(one, day, base)
    assert one.trainer.functions == [trainer_process.lesson] * 3
    chain = [digest(one, channel) for channel in ("corrections", "words", "feedback", "picks")]
    assert chain[1] == chain[0]  # without a line the checkpoint stays
    assert chain[3] == last.name
    assert len({base.name, *chain}) == 4
    assert one.engine.examined == []
    again, _, _ = night("preference_learning=direct")
    assert run(again, day, base) == last
    assert again.trainer.functions == []  # nothing is learned twice


def test_a_channel_that_is_switched_off_is_left_out(night: Any) -> None:
    one, day, base = night("lessons.corrections.enabled=false", "lessons.words.enabled=false")
    last = run(one, day, base)
    assert one.trainer.functions == [trainer_process.lesson]
    assert digest(one, "feedback") == last.name
    assert sorted(folder.name for folder in (one.folder / "lessons").iterdir()) == ["feedback"]


def test_an_exam_follows_each_channel_that_taught_something(night: Any) -> None:
    one, day, base = night("lessons.examine=true", "preference_learning=direct")
    last = run(one, day, base)
    assert one.engine.examined == [base.name, digest(one, "corrections"), digest(one, "feedback"), last.name]
    lessons = one.folder / "lessons"
    assert sorted(str(file.parent.relative_to(lessons)) for file in lessons.rglob(f"evaluate/{MANIFEST}")) == [
        "corrections/evaluate",
        "evaluate",
        "feedback/evaluate",
        "picks/evaluate",
    ]


@pytest.mark.parametrize(("how", "picks"), [("reward_model", False), ("direct", True), ("both", True)])
def test_preference_learning_chooses_whether_picks_are_a_channel(how: str, picks: bool) -> None:
    config = load_night(STARTER, [f"preference_learning={how}"])
    assert [channel.name for channel, _ in channels(config)] == ["corrections", "words", "feedback", *["picks"] * picks]
    assert {channel.name: lesson for channel, lesson in channels(config)}["words"] == config.lessons.words


@pytest.mark.parametrize(("how", "learnt"), [("reward_model", 0), ("both", 0), ("direct", 1)])
def test_held_out_conversations_are_learned_by_no_channel(night: Any, how: str, learnt: int) -> None:
    one, day, base = night(f"preference_learning={how}", "reward_model.held_out_share=0.999999")
    run(one, day, base)
    counts = {file.parent.name: json.loads(file.read_text()) for file in one.folder.glob("lessons/*/counts.json")}
    used = {channel: count["used"] for channel, count in counts.items() if channel != "words"}
    assert used == {"corrections": learnt, "feedback": learnt} | ({} if how == "reward_model" else {"picks": learnt})
