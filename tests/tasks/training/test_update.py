"""A round's update through Prefect and the real trainer's process: what it takes from the tables, and that it counts
once, whenever that process dies."""

import dataclasses
import json
import logging
import math
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.storage.home import Home
from models.optim.trainer_state import NOTE
from models.rollout import Rollout
from tasks.stage import Artifact, committed
from tasks.tables import ADVANTAGES, ROLLOUTS, SCORES, read_table, write_table
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor, Updated
from tasks.training.update import UpdateChangedError, UpdateMeans, advantages_by_place, checkpoint, update
from tasks.workers import Worker
from tests.models.tiny import sampled_groups, trainer_config, write_tiny
from tests.tasks import child_calls
from tests.tasks.committed_tables import score, write_stage

CONFIG = trainer_config(steps_per_round=2)


def written(tmp_path: Path, rows: list[tuple[int, float | None, list[float] | None]]) -> dict[tuple[int, int], Any]:
    """Rows of group 3 by sample, advantage and the tokens' advantages, written and read back."""
    table = [
        {"problem_id": "p", "group": 3, "sample": sample, "advantage": advantage, "token_advantages": tokens}
        for sample, advantage, tokens in rows
    ]
    write_table(tmp_path / "advantages.parquet", ADVANTAGES, table)
    return advantages_by_place(read_table(tmp_path / "advantages.parquet", ADVANTAGES))


def test_one_advantage_a_completion(tmp_path: Path) -> None:
    found = written(tmp_path, [(0, 0.5, None), (1, None, None), (2, -0.5, None)])
    assert (found[3, 0], found[3, 2]) == (0.5, -0.5)
    assert math.isnan(found[3, 1])


def test_the_tokens_own_advantages_where_there_are_some(tmp_path: Path) -> None:
    found = written(tmp_path, [(0, 0.5, [0.25, -1.0]), (1, None, [1.0]), (2, -0.5, None)])
    assert found == {(3, 0): [0.25, -1.0], (3, 1): [1.0], (3, 2): -0.5}


# --- the trainer's process dies


class Round:
    """What a round's update goes on from: its tables, as the stages before it leave them, and the trainer."""

    def __init__(self, home: Home, student: Path, worker: Worker) -> None:
        self.night, self.worker = home.night("2026-01-01"), worker
        self.checkpoints = home.checkpoints
        home.checkpoints.mkdir(parents=True)
        self.base = home.checkpoints / "base"
        self.base.symlink_to(student)
        rollouts = sampled_groups(student, [[4, 1, 6], [2, 5]])
        self.tables = _tables(self.night / "tables", rollouts)
        self.predecessor = Predecessor(self.base, "base", None)
        self.policies: list[Path] = []

    @property
    def arguments(self) -> dict[str, Any]:
        """The stage's: its inputs and its means."""
        retired = (self.policies[:-1], [self.state(number) for number in range(1, len(self.policies))])
        means = UpdateMeans(self.predecessor, self.checkpoints, self.worker, retired)
        inputs = {name: (artifact,) for name, artifact in self.tables.items()}
        return {**inputs, "config": CONFIG, "predecessor": self.predecessor.digest, "means": means}

    def update(self) -> Updated:
        own = self.arguments
        return update("round 1 · update", own["rollouts"], own["advantages"], CONFIG, own["means"])

    def checkpoint(self, number: int, updated: Updated) -> Artifact:
        """Commits the update, and makes it the next one's predecessor."""
        arguments = {**self.arguments, "updated": updated, "state": self.state(number), "seconds_round": None}
        artifact = checkpoint(self.night, f"round-{number:02d}/checkpoint", **arguments)
        self.predecessor = Predecessor(self.base, updated.checkpoint.name, self.state(number))
        self.policies.append(updated.checkpoint)
        return artifact

    def state(self, number: int) -> Path:
        return self.night / "state" / f"round-{number:02d}"

    def kill(self) -> None:
        """Kills the trainer's process, and waits until that is known."""
        os.kill(self.worker.call(os.getpid), signal.SIGKILL)
        time.sleep(0.5)

    def kill_during_the_next_call(self) -> None:
        """The call waits behind one that takes a while and one that kills."""
        self.worker.submit(child_calls.sleep, 1.5)
        self.worker.submit(child_calls.die)


def _tables(folder: Path, rollouts: list[Rollout]) -> dict[str, Artifact]:
    rewards = [1.0, 0.0, 0.0, 1.0, 0.0]
    places = [{"problem_id": r.problem_id, "group": r.group, "sample": r.sample} for r in rollouts]
    advantages = [p | {"advantage": r - 0.4, "token_advantages": None} for p, r in zip(places, rewards, strict=True)]
    scores = [score(r.problem_id, r.group, r.sample, reward) for r, reward in zip(rollouts, rewards, strict=True)]
    found = {
        "prompts": write_stage(folder / "select_prompts", {}),
        "rollouts": write_stage(
            folder / "sample", {"rollouts": (ROLLOUTS, [dataclasses.asdict(row) for row in rollouts])}
        ),
        "scores": write_stage(folder / "score", {"scores": (SCORES, scores)}),
        "advantages": write_stage(folder / "credit", {"advantages": (ADVANTAGES, advantages)}),
    }
    (found["advantages"].folder / "signal.json").write_text(json.dumps({"groups": 2, "with_signal": 2}))
    (found["prompts"].folder / "selection.json").write_text(json.dumps({"drawn": 2}))
    (found["scores"].folder / "verdicts.json").write_text(json.dumps({"arithmetic": {"correct": 2, "wrong": 3}}))
    return found


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker("trainer")
    yield worker
    worker.close(grace=0)


@pytest.fixture
def the_round(tmp_path: Path, student: Path, worker: Worker) -> Round:
    return Round(Home(tmp_path), student, worker)


def undisturbed(the_round: Round, rounds: int) -> list[tuple[str, str]]:
    """Digests of checkpoint and state of every round that nothing disturbs, in another place."""
    found = []
    root = the_round.night / "undisturbed"
    predecessor = the_round.predecessor
    rollouts = sampled_groups(the_round.base, [[4, 1, 6], [2, 5]])
    for number in range(1, rounds + 1):
        state = root / str(number)
        checkpoint = the_round.worker.call(
            trainer_process.update, predecessor, CONFIG, rollouts, [0.6, -0.4, -0.4, 0.6, -0.4], the_round.checkpoints
        ).checkpoint
        the_round.worker.call(trainer_process.save_state, checkpoint.name, state)
        found.append((checkpoint.name, json.loads((state / NOTE).read_text())["tensors"]))
        predecessor = Predecessor(predecessor.base, checkpoint.name, state)
    return found


@pytest.mark.usefixtures("prefect_server")
def test_groups_without_a_verified_signal_make_no_round_worth_its_step(the_round: Round) -> None:
    (the_round.tables["advantages"].folder / "signal.json").write_text(json.dumps({"groups": 2, "with_signal": 0}))
    metrics = flow(the_round.update)().metrics
    assert (metrics["groups"], metrics["useful_groups"], metrics["skipped"]) == (2.0, 0.0, 1.0)


@pytest.mark.usefixtures("prefect_server")
def test_a_process_that_dies_between_update_and_state(
    the_round: Round, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once before the state is asked for, once after: the round counts, and in the same bits.

    What the third round retires is gone by then; what it is taken again from is not.
    """
    expected = undisturbed(the_round, 3)
    shutil.rmtree(the_round.checkpoints / expected[0][0])
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)

    @flow
    def rounds() -> None:
        kills = (the_round.kill, lambda: None, the_round.kill_during_the_next_call)
        for number, kill in enumerate(kills, 1):
            updated = the_round.update()
            kill()
            artifact = the_round.checkpoint(number, updated)
            assert artifact.read_json("metrics.json")["skipped"] == 0.0
            assert (artifact.folder / "checkpoint.txt").read_text() == updated.checkpoint.name

    rounds()
    notes = [json.loads((the_round.state(number) / NOTE).read_text()) for number in (2, 3)]
    assert [(note["checkpoint"], note["tensors"]) for note in notes] == expected[1:]
    assert [note["step"] for note in notes] == [4, 6]
    assert not the_round.state(1).exists()
    assert [policy.exists() for policy in the_round.policies] == [False, True, True]
    assert caplog.text.count("the update is taken again") == 2
    assert not list(the_round.night.rglob("*.draft"))


def test_an_update_that_comes_out_differently_the_second_time_does_not_count(the_round: Round) -> None:
    """As it may on a GPU: the next round samples from the first one already."""
    updated = Updated(the_round.checkpoints / "cafe42", {})
    folder = the_round.night / "round-01" / "checkpoint"
    folder.mkdir(parents=True)
    arguments = {**the_round.arguments, "updated": updated, "state": the_round.state(1), "seconds_round": None}
    with pytest.raises(UpdateChangedError, match="and not to cafe42: the round is taken again"):
        checkpoint.write(folder, **arguments)
    assert committed(folder) is None
    assert not the_round.state(1).exists()
