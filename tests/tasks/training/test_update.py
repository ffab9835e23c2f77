"""A round's update: what it reads from the tables, and that it counts once, whenever the trainer's process dies."""

import dataclasses
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.storage.home import Home
from models.optim.trainer_state import NOTE
from models.rollout import Rollout
from tasks.stage import Artifact, committed
from tasks.tables import ADVANTAGES, ROLLOUTS, write_table
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor, Updated
from tasks.training.update import UpdateChangedError, UpdateResources, checkpoint, read_advantages, update
from tasks.workers.worker import WorkerDiedError
from tests.models.support.tiny import sampled_groups, trainer_config
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

CONFIG = trainer_config(steps_per_round=2)
LENGTHS = [[4, 1, 6], [2, 5]]  # tokens of the completions of two groups


def test_advantages_are_the_tokens_own_where_there_are_some(tmp_path: Path) -> None:
    table = [
        {"problem_id": "p", "group": 3, "sample": sample, "advantage": advantage, "token_advantages": tokens}
        for sample, (advantage, tokens) in enumerate([(0.5, [0.25, -1.0]), (None, [1.0]), (-0.5, None), (None, None)])
    ]
    write_table(tmp_path / "advantages.parquet", ADVANTAGES, table)
    found = read_advantages(tmp_path)
    ungraded: Any = found.pop((3, 3))
    assert math.isnan(ungraded)
    assert found == {(3, 0): [0.25, -1.0], (3, 1): [1.0], (3, 2): -0.5}


# --- the trainer's process dies


class MortalWorker(InProcessWorker):
    """A trainer's process that can die before a call, or during it."""

    dies_during_the_next_call = False

    def die(self) -> None:
        trainer_process._let_go()

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if self.dies_during_the_next_call:
            self.dies_during_the_next_call = False
            self.die()
            raise WorkerDiedError("the trainer process died")
        return super().call(function, *arguments, **options)

    def die_during_the_next_call(self) -> None:
        self.dies_during_the_next_call = True


class Round:
    """A round up to its update: the tables of the stages before, and the trainer."""

    def __init__(self, home: Home, student: Path) -> None:
        self.night, self.trainer = home.night("2026-01-01"), MortalWorker()
        self.checkpoints = home.checkpoints
        home.checkpoints.mkdir(parents=True)
        self.base = home.checkpoints / "base"
        self.base.symlink_to(student)
        self.rollouts, self.advantages = _tables(self.night / "tables", sampled_groups(student, LENGTHS))
        self.predecessor = Predecessor(self.base, "base", None)
        self.policies: list[Path] = []

    @property
    def resources(self) -> UpdateResources:
        retired = self.policies[:-1] + [self.state(number) for number in range(1, len(self.policies))]
        return UpdateResources(self.predecessor, self.checkpoints, self.trainer, retired)

    def update(self) -> Updated:
        return update([self.rollouts], [self.advantages], CONFIG, 1.0, self.resources)

    def arguments(self, number: int, updated: Updated) -> dict[str, Any]:
        """The arguments of the round's checkpoint."""
        inputs = {"rollouts": (self.rollouts,), "advantages": (self.advantages,), "config": CONFIG, "rate_factor": 1.0}
        resources = {"updated": updated, "state": self.state(number), "resources": self.resources}
        return inputs | resources | {"predecessor": self.predecessor.digest, "figures": {"reward": 0.4}}

    def checkpoint(self, number: int, updated: Updated) -> Artifact:
        """Commit the update, and make it the next one's predecessor."""
        artifact = checkpoint(self.night, f"round-{number:02d}/checkpoint", **self.arguments(number, updated))
        self.predecessor = Predecessor(self.base, updated.checkpoint.name, self.state(number))
        self.policies.append(updated.checkpoint)
        return artifact

    def state(self, number: int) -> Path:
        return self.night / "state" / f"round-{number:02d}"


def _tables(folder: Path, rollouts: list[Rollout]) -> tuple[Artifact, Artifact]:
    rewards = [1.0, 0.0, 0.0, 1.0, 0.0]
    advantages = [
        {"problem_id": r.problem_id, "group": r.group, "sample": r.sample, "advantage": a - 0.4}
        for r, a in zip(rollouts, rewards, strict=True)
    ]
    rows = [dataclasses.asdict(row) for row in rollouts]
    credit = write_stage(folder / "credit", {"advantages": (ADVANTAGES, advantages)})
    return write_stage(folder / "sample", {"rollouts": (ROLLOUTS, rows)}), credit


@pytest.fixture
def the_round(tmp_path: Path, tiny_student: Path) -> Round:
    return Round(Home(tmp_path), tiny_student)


def study(the_round: Round, *kills: Callable[[], None]) -> list[dict[str, Any]]:
    """Rounds with something between update and state. Returns the notes of the last two, which are left."""

    @flow
    def rounds() -> None:
        for number, kill in enumerate(kills, 1):
            updated = the_round.update()
            kill()
            artifact = the_round.checkpoint(number, updated)
            assert artifact.read_json("metrics.json").keys() == {"reward", "seconds_checkpoint"}
            assert (artifact.folder / "checkpoint.txt").read_text() == updated.checkpoint.name

    rounds()
    return [json.loads((the_round.state(number) / NOTE).read_text()) for number in (2, 3)]


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_a_process_that_dies_between_update_and_state(
    the_round: Round, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before and while the state is written, the round counts all the same, with the same bits.

    The third round's retired checkpoint is gone by then; the one that its update is repeated from is not.
    """
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    undisturbed, trainer = Round(Home(tmp_path / "undisturbed"), the_round.base.resolve()), the_round.trainer
    rollouts, advantages = sampled_groups(the_round.base, LENGTHS), [0.6, -0.4, -0.4, 0.6, -0.4]
    first = trainer_process.update(the_round.predecessor, CONFIG, rollouts, advantages, the_round.checkpoints)
    expected = study(undisturbed, *[lambda: None] * 3)
    assert study(the_round, trainer.die, lambda: None, trainer.die_during_the_next_call) == expected
    assert [note["step"] for note in expected] == [4, 6]
    assert undisturbed.policies[0].name == the_round.policies[0].name == first.checkpoint.name
    assert not the_round.state(1).exists()
    assert [policy.exists() for policy in the_round.policies] == [False, True, True]
    assert caplog.text.count("the update is repeated") == 2
    assert not list(the_round.night.rglob("*.draft"))


def test_an_update_that_comes_out_differently_the_second_time_does_not_count(the_round: Round) -> None:
    """On a GPU it may, and the next round has sampled from the first one already."""
    folder = the_round.night / "round-01" / "checkpoint"
    folder.mkdir(parents=True)
    updated = Updated(the_round.checkpoints / "cafe42", {})
    with pytest.raises(UpdateChangedError, match="cafe42"):
        checkpoint.write(folder, **the_round.arguments(1, updated))
    assert committed(folder) is None
    assert not the_round.state(1).exists()
