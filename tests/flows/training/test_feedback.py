"""The owner's channels in their order, on the real stages and a tiny student."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from flows.run.context import Night
from flows.training.lessons import Lessons as NightLessons
from flows.training.lessons import channels
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.stage import Artifact
from tasks.training import trainer_process
from tests.flows.rounds import School, ScriptedEngine
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

STAGES = "stages=[lessons, grpo]"
EXAM = "exam={target: {benchmark: arithmetic, levels: ['1'], problems: 20}}"
ASKED = json.dumps([{"role": "user", "content": "Hi"}])
PICK = {"messages": ASKED, "responses": json.dumps(["Fine.", "So so."]), "chosen": 0, "policy": "x"}
LINES: dict[str, Any] = {
    "corrections": (CORRECTIONS, [{"messages": ASKED, "response": "Bad.", "correction": "Fine."}]),
    "words": (WORDS, []),
    "feedback": (FEEDBACK, [{"messages": ASKED, "response": "Well.", "value": 1.0}]),
    "preferences": (PREFERENCES, [PICK]),
}


@dataclass
class Lessons:
    """The owner's lessons of one night."""

    night: Night
    base: Path
    engine: ScriptedEngine
    trainer: InProcessWorker

    def run(self) -> Path:
        """Run or resume them. Returns the last checkpoint."""
        folder = self.night.folder / "freeze_journal"
        day = Artifact(folder=(folder if folder.exists() else write_stage(folder, LINES).folder), digest="day")

        @flow
        def lessons() -> Path:
            (step,) = (step for step in self.night.config.steps if step.kind == "lessons")
            return NightLessons(self.night, day, ()).teach(step, self.base)

        return lessons()

    def digest(self, channel: str) -> str:
        return (self.night.folder / "lessons" / channel / "checkpoint.txt").read_text()


@pytest.fixture
def lessons(school: School, request: pytest.FixtureRequest) -> Iterator[Callable[..., Lessons]]:
    def begin(*settings: str) -> Lessons:
        engine, trainer = ScriptedEngine(school.student, []), InProcessWorker()
        night = school.night(request.node.name, engine, STAGES, EXAM, *settings)
        night.trainer = trainer
        return Lessons(night, night.home.checkpoints / school.student.name, engine, trainer)

    yield begin
    trainer_process._let_go()


@pytest.mark.slow
def test_each_channel_goes_on_from_the_one_before(lessons: Callable[..., Lessons]) -> None:
    settings = ("preference_learning=direct",)
    one = lessons(*settings)
    last = one.run()
    assert one.trainer.functions == [trainer_process.lesson] * 3
    chain = [one.digest(channel) for channel in ("corrections", "words", "feedback", "picks")]
    assert chain[1] == chain[0]  # without a line the checkpoint stays
    assert chain[3] == last.name
    assert len({one.base.name, *chain}) == 4
    assert one.engine.examined == []
    again = lessons(*settings)
    assert again.run() == last
    assert again.trainer.functions == []  # nothing is learned twice


def test_a_channel_that_is_switched_off_is_left_out(lessons: Callable[..., Lessons]) -> None:
    off = ("lessons.corrections.epochs=0", "lessons.words.epochs=0", "preference_learning=reward_model")
    one = lessons(*off)
    assert one.run().name == one.digest("feedback")
    assert one.trainer.functions == [trainer_process.lesson]
    assert one.engine.examined == []
    assert [folder.name for folder in (one.night.folder / "lessons").iterdir()] == ["feedback"]


@pytest.mark.parametrize(("how", "picks"), [("reward_model", False), ("direct", True), ("both", True)])
def test_preference_learning_chooses_whether_picks_are_a_channel(how: str, picks: bool) -> None:
    config = load_night(STARTER, [f"preference_learning={how}"])
    assert [channel.name for channel, _ in channels(config)] == ["corrections", "words", "feedback", *["picks"] * picks]
    assert {channel.name: lesson for channel, lesson in channels(config)}["words"] == config.lessons.words
