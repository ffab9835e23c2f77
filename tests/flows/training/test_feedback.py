"""The owner's channels in their order, on the real stages and a tiny student."""

import json
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from flows.training.lessons import Lessons
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.stage import Artifact
from tasks.training import trainer_process
from tests.flows.rounds import School, ScriptedEngine
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

SETTINGS = (
    "stages=[lessons, grpo]",
    "exam={target: {benchmark: arithmetic, levels: ['1'], problems: 20}}",
    "preference_learning=direct",
)
ASKED = json.dumps([{"role": "user", "content": "Hi"}])
PICK = {"messages": ASKED, "responses": json.dumps(["Fine.", "So so."]), "chosen": 0, "policy": "x"}
LINES: dict[str, Any] = {
    "corrections": (CORRECTIONS, [{"messages": ASKED, "response": "Bad.", "correction": "Fine."}]),
    "words": (WORDS, []),
    "feedback": (FEEDBACK, [{"messages": ASKED, "response": "Well.", "value": 1.0}]),
    "preferences": (PREFERENCES, [PICK]),
}


def teach(school: School) -> tuple[Any, Path]:
    """Run or resume the owner's lessons of a night. Returns the night and the last checkpoint."""
    night = school.night("channels", ScriptedEngine(school.student, []), *SETTINGS)
    night.trainer = InProcessWorker()
    folder = night.folder / "freeze_journal"
    day = Artifact(folder=(folder if folder.exists() else write_stage(folder, LINES).folder), digest="day")

    @flow
    def lessons() -> Path:
        (step,) = (step for step in night.config.steps if step.kind == "lessons")
        return Lessons(night, day).teach(step, night.home.checkpoints / school.student.name)

    return night, lessons()


@pytest.mark.slow
def test_each_channel_goes_on_from_the_one_before(school: School, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(trainer_process._let_go)
    night, last = teach(school)
    assert night.trainer.functions == [trainer_process.lesson] * 3
    names = ("corrections", "words", "feedback", "picks")
    chain = [(night.folder / "lessons" / name / "checkpoint.txt").read_text() for name in names]
    assert chain[1] == chain[0]  # without a line the checkpoint stays
    assert chain[3] == last.name
    assert len({school.student.name, *chain}) == 4
    assert night.engine.examined == []
    again, same = teach(school)
    assert same == last
    assert again.trainer.functions == []  # nothing is learned twice


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        (["preference_learning=reward_model"], ["corrections", "words", "feedback"]),
        (["preference_learning=direct"], ["corrections", "words", "feedback", "picks"]),
        (["preference_learning=both"], ["corrections", "words", "feedback", "picks"]),
        (["preference_learning=reward_model", "lessons.corrections.epochs=0", "lessons.words.epochs=0"], ["feedback"]),
    ],
)
def test_the_channels_that_are_taught(settings: list[str], on: list[str]) -> None:
    assert [*load_night(STARTER, settings).channels] == on
