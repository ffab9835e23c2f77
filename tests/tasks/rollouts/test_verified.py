"""An engine whose weights are not proven is restarted, once; shards of prompts do not depend on each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, StudentConfig
from models.engine.sync_probe import SyncError
from models.rollout import Rollout
from tasks.rollouts.verified import Player, call_verified, sample_verified, shard_seed
from tasks.workers import engine_process
from tests.tasks.doubles.workers import InProcessWorker


class UnprovenEngine(InProcessWorker):
    """An engine whose first `unproven` processes do not hold the checkpoint's weights."""

    def __init__(self, unproven: int) -> None:
        super().__init__()
        self.unproven, self.processes, self.losses = unproven, 1, list[str]()
        self.on_loss = self.losses.append

    def call(self, function: object, *arguments: object, **options: object) -> int:
        if self.processes <= self.unproven:
            raise SyncError("cafe is not what the engine samples from")
        return self.processes

    def close(self) -> None:
        self.processes += 1


@pytest.mark.parametrize("unproven", [0, 1])
def test_a_new_process_is_asked_after_an_unproven_sync(unproven: int) -> None:
    engine = UnprovenEngine(unproven)
    assert call_verified(engine, engine_process.sample) == 1 + unproven
    assert engine.losses == ["the engine was restarted: cafe is not what the engine samples from"] * unproven


def test_a_checkpoint_that_cannot_be_proven_ends_the_night() -> None:
    engine = UnprovenEngine(2)
    with pytest.raises(SyncError, match="cafe"):
        call_verified(engine, engine_process.sample)
    assert engine.processes == 2


class SeededEngine(InProcessWorker):
    """An engine whose completions depend on all that a call has."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int, int]] = []  # seeds, and how many prompts

    def call(self, function: object, *arguments: Any, seed: int, **options: Any) -> Any:
        _, _, prompts, size = arguments
        self.calls.append((seed, len(prompts)))
        seconds = {"sync": 1.0, "generate": 2.0, "probe_difference": 0.01 * len(self.calls)}
        return [[self.rollout(n, i, seed, prompts) for i in range(size)] for n in range(len(prompts))], seconds

    def rollout(self, group: int, sample: int, seed: int, prompts: Sequence[list[int]]) -> Rollout:
        text = f"{seed} {prompts} {group} {sample}"
        return Rollout("", group, sample, prompts[group], [1], [-0.5], [True], "stop", text, "cafe")


def sampled(engine: SeededEngine, prompts: list[list[int]], shard: int | None, size: int = 8) -> Any:
    config = EngineConfig(shard_prompts=shard)
    worker: Any = engine
    player = Player(Path("cafe"), StudentConfig(), config, worker, 9, temperature=1.0)
    return sample_verified(player, prompts, size, seed=7)


@pytest.mark.parametrize(("size", "shards"), [(1, [16, 14]), (3, [4] * 7 + [2]), (16, [2] * 15)])
def test_fewer_completions_of_a_prompt_make_longer_shards(size: int, shards: list[int]) -> None:
    engine, whole = SeededEngine(), SeededEngine()
    sampled(engine, [[n] for n in range(30)], 2, size)
    assert [count for _, count in engine.calls] == shards
    sampled(whole, [[n] for n in range(30)], None, size)
    assert whole.calls == [(7, 30)]  # without shards one call has all prompts, and the seed as it is


def test_a_shard_depends_on_no_other_and_groups_are_numbered_through() -> None:
    engine, prompts = SeededEngine(), [[n] for n in range(5)]
    groups, figures = sampled(engine, prompts, 2)
    assert engine.calls == [(shard_seed(7, 0), 2), (shard_seed(7, 1), 2), (shard_seed(7, 2), 1)]
    assert len({seed for seed, _ in engine.calls}) == 3
    assert [[one.group for one in group] for group in groups] == [[n] * 8 for n in range(5)]
    assert [group[0].prompt_token_ids for group in groups] == prompts
    assert figures == {"sync": 3.0, "generate": 6.0, "probe_difference": 0.03}
    other, _ = sampled(SeededEngine(), [[9], [9], *prompts[2:]], 2)
    assert [[one.text for one in group] for group in other[2:]] == [[one.text for one in group] for group in groups[2:]]
