"""Calls of an engine that is proven to hold a checkpoint's weights; long lists of prompts are cut into shards."""

import dataclasses
import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from conf.schema import EngineConfig
from models.engine.sync_probe import SyncError
from models.rollout import Rollout
from tasks.workers import engine_process
from tasks.workers.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")

GROUP = 8  # completions that a round usually has of each prompt; with fewer, a shard has more prompts
log = logging.getLogger("nightschool")


def call_proven(engine: Worker, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in the engine's process, and once more in a new one after an unproven weight sync.

    Raises SyncError where a new engine's weights are not proven either.
    """
    try:
        return engine.call(function, *args, **kwargs)
    except SyncError as error:
        log.warning("%s: the engine is restarted", error)
        engine.on_loss(f"the engine was restarted: {error}")
        engine.close()
        return engine.call(function, *args, **kwargs)


def sample_proven(
    engine: Worker,
    checkpoint: Path,
    config: EngineConfig,
    prompts: Sequence[list[int]],
    size: int,
    *,
    seed: int,
    **options: Any,
) -> tuple[list[list[Rollout]], dict[str, float]]:
    """Sample `size` completions of each prompt, in shards of `config.shard_prompts`.

    Where a prompt gets few completions (in an exam, one), a shard has more prompts, so that it fills the engine too.
    A shard is sampled with a seed and caches of its own, so what comes of it depends neither on the others nor on which
    machine samples it. `options`, and what is returned: as of `engine_process.sample`; seconds are summed.
    """
    if config.shard_prompts is None:
        return call_proven(engine, engine_process.sample, checkpoint, config, prompts, size, seed=seed, **options)
    length = config.shard_prompts * max(1, GROUP // size)

    def sample_shard(worker: Worker, start: int) -> tuple[list[list[Rollout]], dict[str, float]]:
        shard, own_seed = prompts[start : start + length], shard_seed(seed, start // length)
        return call_proven(worker, engine_process.sample, checkpoint, config, shard, size, seed=own_seed, **options)

    found, figures = list[list[Rollout]](), defaultdict[str, float](float)
    for groups, seen in engine.spread(sample_shard, range(0, len(prompts), length)):
        for name, value in seen.items():
            figures[name] = max(figures[name], value) if name == "probe_difference" else figures[name] + value
        start = len(found)
        found += [[dataclasses.replace(one, group=start + one.group) for one in group] for group in groups]
    return found, dict(figures)


def shard_seed(seed: int, number: int) -> int:
    """Return the seed of a shard, from 0: of 63 bits, all of them from both numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed} shard {number}".encode()).digest()[:8]) >> 1
