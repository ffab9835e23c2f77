"""A round's update: what it reads from the tables, and that it counts once, whenever the trainer's process dies."""

import dataclasses
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.optim.trainer_state import NOTE
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
EARNED = [0.6, -0.4, -0.4, 0.6, -0.4]  # their advantages


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
    """A trainer's process that can die during the next call."""

    dies = False

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if self.dies:
            self.dies = False
            trainer_process._let_go()
            raise WorkerDiedError("the trainer process died")
        return super().call(function, *arguments, **options)


class Round:
    """A round up to its update: the tables of the stages before, and the trainer."""

    def __init__(self, folder: Path, student: Path) -> None:
        self.folder, self.state, self.trainer = folder, folder / "state" / "round-01", MortalWorker()
        self.checkpoints = folder / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        (self.checkpoints / "base").symlink_to(student)
        self.predecessor, self.rollouts = (
            Predecessor(self.checkpoints / "base", "base", None),
            sampled_groups(student, LENGTHS),
        )
        earned = [
            {"problem_id": r.problem_id, "group": r.group, "sample": r.sample, "advantage": advantage}
            for r, advantage in zip(self.rollouts, EARNED, strict=True)
        ]
        self.inputs: dict[str, Any] = {
            "rollouts": [
                write_stage(folder / "sample", {"rollouts": (ROLLOUTS, map(dataclasses.asdict, self.rollouts))})
            ],
            "advantages": [write_stage(folder / "credit", {"advantages": (ADVANTAGES, earned)})],
            "config": CONFIG,
            "rate_factor": 1.0,
            "resources": UpdateResources(self.predecessor, self.checkpoints, self.trainer),
        }

    def checkpoint(self, updated: Updated) -> dict[str, Any]:
        """Commit the update; return what its state notes: the checkpoint, the step, and the digest of the tensors."""
        (self.folder / "checkpoint").mkdir(exist_ok=True)
        others = {"predecessor": "base", "updated": updated, "state": self.state, "figures": {"reward": 0.4}}
        checkpoint.write(self.folder / "checkpoint", **self.inputs, **others)
        return json.loads((self.state / NOTE).read_text())


def test_a_process_that_dies_between_update_and_state(
    tmp_path: Path, tiny_student: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before and while the state is written, the round counts all the same, with the same bits.

    Prefect calls the stage again (tests/tasks/test_stage.py). Later rounds: test_trainer_process.py.
    """
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    undisturbed, killed = (Round(tmp_path / name, tiny_student) for name in ("undisturbed", "killed"))
    expected = undisturbed.checkpoint(update.fn(**undisturbed.inputs))
    updated = update.fn(**killed.inputs)
    trainer_process._let_go()
    killed.trainer.dies = True
    with pytest.raises(WorkerDiedError):
        killed.checkpoint(updated)
    assert killed.checkpoint(updated) == expected
    assert caplog.text.count("the update is repeated") == 1
    assert (
        (killed.folder / "checkpoint/checkpoint.txt").read_text() == updated.checkpoint.name == expected["checkpoint"]
    )
    figures = json.loads((killed.folder / "checkpoint/metrics.json").read_text())
    assert figures.keys() == {"reward", "seconds_checkpoint"}
    assert not list(killed.folder.rglob("*.draft"))
    arguments = (killed.predecessor, CONFIG, killed.rollouts, EARNED, killed.checkpoints)
    assert (
        trainer_process.update(*arguments).checkpoint == updated.checkpoint
    )  # it has learned from what the tables hold


def test_an_update_that_comes_out_differently_the_second_time_does_not_count(
    tmp_path: Path, tiny_student: Path
) -> None:
    """On a GPU it may, and the next round has sampled from the first one already."""
    the_round = Round(tmp_path, tiny_student)
    with pytest.raises(UpdateChangedError, match="cafe42"):
        the_round.checkpoint(Updated(the_round.checkpoints / "cafe42", {}))
    assert not the_round.state.exists()
