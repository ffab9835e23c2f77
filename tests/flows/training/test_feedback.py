"""The owner's channels in their order: the real stages, a tiny student, and an engine that knows no answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.feedback import channels
from models.checkpoint import keep, write_lineage
from models.rollout import Rollout
from tasks.rollouts import engine_process as in_engine
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
    """In vLLM's place: every answer is wrong. It notes who sat the exam."""

    running = True

    def __init__(self) -> None:
        self.sat: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if function is in_engine.sample:
            checkpoint, _, prompts, *_ = arguments
            self.sat.append(checkpoint.name)
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
        found = Night(home, DATE, config)
        found.engine, found.trainer = Engine(), InProcessWorker()  # pyright: ignore
        found.folder.mkdir(parents=True, exist_ok=True)
        folder = found.folder / "freeze_journal"
        day = Artifact(folder=folder, digest="day") if folder.exists() else write_stage(folder, LINES)
        return found, day.model_copy(update={"digest": "day"}), base

    return begin


def run(night: Night, day: Artifact, base: Path) -> Path:
    @flow
    def lessons() -> Path:
        return learn_feedback(night, day, base, ())

    return lessons()


def noted(night: Night, channel: str) -> str:
    return (night.folder / "lessons" / channel / "checkpoint.txt").read_text()


def test_each_channel_goes_on_from_the_one_before_it(night: Any) -> None:
    one, day, base = night("preference_learning=direct")
    last = run(one, day, base)
    assert one.trainer.functions == [trainer_process.lesson] * 3
    chain = [noted(one, channel) for channel in ("corrections", "words", "feedback", "picks")]
    assert chain[1] == chain[0]  # without a line the checkpoint is passed on
    assert chain[3] == last.name
    assert len({base.name, *chain}) == 4
    assert one.engine.sat == []
    again, _, _ = night("preference_learning=direct")
    assert run(again, day, base) == last
    assert again.trainer.functions == []  # nothing committed is learnt twice


def test_a_channel_that_is_switched_off_is_left_out(night: Any) -> None:
    one, day, base = night("lessons.corrections.enabled=false", "lessons.words.enabled=false")
    last = run(one, day, base)
    assert one.trainer.functions == [trainer_process.lesson]
    assert noted(one, "feedback") == last.name
    assert sorted(folder.name for folder in (one.folder / "lessons").iterdir()) == ["feedback"]


def test_the_exam_is_sat_around_each_channel_that_taught_something(night: Any) -> None:
    one, day, base = night("lessons.examine=true", "preference_learning=direct")
    last = run(one, day, base)
    assert one.engine.sat == [base.name, noted(one, "corrections"), noted(one, "feedback"), last.name]
    lessons = one.folder / "lessons"
    assert sorted(str(file.parent.relative_to(lessons)) for file in lessons.rglob(f"evaluate/{MANIFEST}")) == [
        "corrections/evaluate",
        "evaluate",
        "feedback/evaluate",
        "picks/evaluate",
    ]


@pytest.mark.parametrize(("how", "picks"), [("reward_model", False), ("direct", True), ("both", True)])
def test_the_picks_are_learnt_directly_where_that_is_asked_for(how: str, picks: bool) -> None:
    config = load_night(STARTER, [f"preference_learning={how}"])
    assert [channel.name for channel, _ in channels(config)] == ["corrections", "words", "feedback", *["picks"] * picks]
    assert {channel.name: own for channel, own in channels(config)}["words"] == config.lessons.words


@pytest.mark.parametrize(("how", "learnt"), [("reward_model", 0), ("both", 0), ("direct", 1)])
def test_what_judges_a_reward_model_is_learnt_by_no_channel(night: Any, how: str, learnt: int) -> None:
    one, day, base = night(f"preference_learning={how}", "reward_model.held_out_share=0.999999")
    run(one, day, base)
    counts = {file.parent.name: json.loads(file.read_text()) for file in one.folder.glob("lessons/*/counts.json")}
    used = {channel: own["used"] for channel, own in counts.items() if channel != "words"}
    assert used == {"corrections": learnt, "feedback": learnt} | ({} if how == "reward_model" else {"picks": learnt})
