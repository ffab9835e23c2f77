"""Training comes to the same checkpoint on one process and on several, and after one of them is killed in a step."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from conf.schema import TrainerConfig
from conf.sections.lessons import DistillConfig
from models.optim.lanes import Lanes
from models.rollout import Rollout
from tasks.training import helpers, trainer_process
from tasks.training.trainer_process import Predecessor
from tasks.workers.worker import WorkerDiedError
from tests.models.support.tiny import trainer_config

ADVANTAGES = ([1.0, -0.5, -0.5, 0.7, -0.7, 0.25, -0.25], [0.5, 0.25, -0.75, -0.1, 0.1, 1.0, -1.0])


@pytest.fixture(autouse=True)
def _alone_again() -> Iterator[None]:
    yield
    helpers.end()
    trainer_process._let_go()


def config(lanes: int, processes: int) -> TrainerConfig:
    # few tokens a pass: there are more microbatches than lanes
    small = trainer_config(microbatch_tokens=8, steps_per_round=2)
    return small.model_copy(update={"lanes": lanes, "processes": processes})


class Rounds:
    """Two rounds' updates, each after the one before."""

    def __init__(self, folder: Path, student: Path, rollouts: list[Rollout], config: TrainerConfig) -> None:
        self.folder, self.rollouts, self.config = folder, rollouts, config
        folder.mkdir()
        (folder / "base").symlink_to(student)
        self.digests = ["base"]
        trainer_process._let_go()

    def update(self) -> None:
        number = len(self.digests)
        state = self.folder / f"state-{number - 1}" if number > 1 else None
        before = Predecessor(self.folder / "base", self.digests[-1], state)
        arguments = (self.config, self.rollouts, ADVANTAGES[number - 1], self.folder)
        digest = trainer_process.update(before, *arguments).checkpoint.name
        trainer_process.save_state(digest, self.folder / f"state-{number}")
        self.digests.append(digest)


@pytest.mark.full
@pytest.mark.parametrize(("lanes", "processes"), [(4, 2), (2, 2), (4, 4)])
def test_several_processes_come_to_the_bits_of_one(
    tmp_path: Path, student: Path, rollouts: list[Rollout], lanes: int, processes: int
) -> None:
    found = []
    for number in (1, processes):
        rounds = Rounds(tmp_path / str(number), student, rollouts, config(lanes, number))
        rounds.update()
        rounds.update()
        examples = [(rollout.prompt_token_ids, rollout.token_ids) for rollout in rollouts]
        lesson = DistillConfig(steps=3, batch_size=4, max_epochs=9, learning_rate=0.01)
        learned, curve = trainer_process.lesson(rounds.folder / "base", rounds.config, lesson, examples, rounds.folder)
        found.append((rounds.digests, learned.name, [step["loss"] for step in curve]))
    assert found[0] == found[1]
    assert len({*found[0][0], found[0][1]}) == 4  # each step changed something


def test_a_process_that_is_killed_in_a_step_costs_a_retry_and_no_bit(
    tmp_path: Path, student: Path, rollouts: list[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Rounds(tmp_path / "alone", student, rollouts, config(2, 1))
    alone.update()
    alone.update()
    two = Rounds(tmp_path / "two", student, rollouts, config(2, 2))
    two.update()
    share = Lanes.share

    def kill(*arguments: object) -> None:
        monkeypatch.setattr(Lanes, "share", share)
        (helper,) = helpers._helpers
        assert helper._pool is not None
        (process,) = helper._pool._processes or {}
        os.kill(process, signal.SIGKILL)
        share(*arguments)  # pyright: ignore

    monkeypatch.setattr(Lanes, "share", kill)
    with pytest.raises(WorkerDiedError, match="died in a step"):
        two.update()
    two.update()
    assert two.digests == alone.digests


def test_lanes_are_summed_in_a_fixed_tree() -> None:
    values = [1e8, 1.0, -1e8, 0.5]
    sums = {"weight": torch.zeros(1)}
    lanes = Lanes(4, torch.device("cpu"))
    for lane, value in zip(lanes.own, values, strict=True):
        sums["weight"] += value
        lanes.close(lane, sums)
    one, two, three, four = (torch.tensor([value]) for value in values)
    assert sums["weight"] == (one + two) + (three + four)
    assert lanes.collect([{"a": 1.0, "b_max": 2.0}, {"a": 2.0, "b_max": 1.0}]) == {"a": 3.0, "b_max": 2.0}
