"""The three rank the owner's held-out picks: each by its own weights, once, and no night fails for it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.reward_model import rank_held_out
from tasks.evaluation.metrics import ranking_accuracies
from tasks.stage import Artifact
from tasks.tables import HELD_OUT
from tasks.training import trainer_process
from tasks.workers import WorkerDiedError
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.tables import write_stage

PICKS = [
    {
        "messages": json.dumps([{"role": "user", "content": f"Shall we {number}?"}]),
        "responses": json.dumps(["yes", "no, not at all", "perhaps"]),
        "chosen": number % 3,
    }
    for number in range(6)
]


class Trainer:
    """The trainer's process, which is this one, as long as it lives."""

    def __init__(self) -> None:
        self.calls, self.lives = 0, True

    def call(self, function: Any, *arguments: Any) -> Any:
        self.calls += 1
        if not self.lives:
            raise WorkerDiedError("the trainer died")
        return function(*arguments)


@pytest.fixture
def night(tmp_path: Path, prefect_server: Path) -> Iterator[Night]:
    found = Night(Home(tmp_path / "school"), "2026-11-20", load_night(STARTER, ["lora={rank: 2}"]))
    found.engine.end()
    found.trainer.end()
    found.trainer = Trainer()  # pyright: ignore
    found.folder.mkdir(parents=True)
    yield found
    trainer_process._let_go()


def rank(night: Night, fitted: Artifact, **sitters: Path) -> None:
    @flow
    def ranked() -> None:
        for who, checkpoint in sitters.items():
            rank_held_out(night, fitted, who, checkpoint)

    ranked()


def test_each_ranks_by_its_own_weights_and_only_once(night: Night, tmp_path: Path) -> None:
    fitted = write_stage(tmp_path / "fit", {"held_out": (HELD_OUT, PICKS)})
    sitters = {"champion": write_tiny(tmp_path / "one"), "candidate": write_tiny(tmp_path / "two", "qwen3")}
    rank(night, fitted, **sitters)
    found = ranking_accuracies(night.folder)
    assert list(found) == ["champion", "candidate"]
    assert all(own.n == 6 for own in found.values())
    right = [json.loads((night.folder / "picks" / who / "ranking.json").read_text())["right"] for who in sitters]
    assert right[0] != right[1]
    rank(night, fitted, **sitters)
    assert night.trainer.calls == 2  # pyright: ignore


def test_without_picks_nobody_is_asked(night: Night, tmp_path: Path) -> None:
    rank(night, write_stage(tmp_path / "fit", {"held_out": (HELD_OUT, [])}), champion=tmp_path / "gone")
    assert (night.trainer.calls, ranking_accuracies(night.folder)) == (0, {})  # pyright: ignore


def test_a_trainer_that_dies_costs_a_line(
    night: Night, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night.trainer, "lives", False)
    rank(night, write_stage(tmp_path / "fit", {"held_out": (HELD_OUT, PICKS)}), champion=write_tiny(tmp_path / "one"))
    assert ranking_accuracies(night.folder) == {}
    assert "the champion does not rank the held-out picks: the trainer died" in caplog.text
