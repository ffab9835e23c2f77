"""Call an engine whose weights are verified, and split long lists of prompts into shards."""

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conf.schema import EngineConfig, StudentConfig
from conf.storage.log import log
from models.engine.sync_probe import SyncError
from models.rollout import Rollout
from tasks.workers import engine_process
from tasks.workers.worker import P, R, Worker

Sampled = tuple[list[list[Rollout]], dict[str, float]]  # the result of `engine_process.sample`

GROUP = 8  # usual number of completions per prompt in a round; with fewer, a shard has more prompts


def call_verified(engine: Worker, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in the engine's process. If the engine's weights fail a check, retry once in a new process.

    Raises SyncError if the weights in the new process fail a check as well.
    """
    try:
        return engine.call(function, *args, **kwargs)
    except SyncError as error:
        log.warning("%s: the engine is restarted", error)
        engine.on_loss(f"the engine was restarted: {error}")
        engine.close()
        return engine.call(function, *args, **kwargs)


class Player(NamedTuple):
    """A model that writes answers: a checkpoint in an engine, and its sampling. `max_tokens`: the most in an answer."""

    checkpoint: Path
    student: StudentConfig
    config: EngineConfig
    engine: Worker
    max_tokens: int
    temperature: float = 0.0

    def identity(self) -> list[Any]:
        """Return what the answers depend on as a stage's input: all but the engine's process."""
        return [self.checkpoint, self.student, self.config, self.max_tokens, self.temperature]

    def call(self, function: Callable[..., R], *arguments: Any, **options: Any) -> R:
        """Call a function of `engine_process` for the checkpoint. Raises as `call_verified` does."""
        trust = self.student.trust_remote_code
        known = (self.checkpoint, self.config, *arguments)
        return call_verified(self.engine, function, *known, trust_remote_code=trust, **options)

    def write(self, prompts: Sequence[list[int]], size: int, *, seed: int, fresh: bool = True) -> Sampled:
        """Sample `size` completions of each prompt in one call. For `fresh`, see `Sampler.sample`."""
        limits: dict[str, Any] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return self.call(engine_process.sample, prompts, size, seed=seed, fresh=fresh, **limits)


def sample_verified(player: Player, prompts: Sequence[list[int]], size: int, *, seed: int) -> Sampled:
    """Sample `size` completions of each prompt, in shards of `config.shard_prompts` prompts (None: in one call).

    If `size` is small (1 in an exam), a shard has proportionally more prompts, so that it fills the engine. Each shard
    has a separate seed and fresh caches, so its completions depend neither on the other shards nor on the machine.
    For the result, see `engine_process.sample`. Metrics are sums; `probe_difference` is the maximum.
    """
    if player.config.shard_prompts is None:
        return player.write(prompts, size, seed=seed)
    length = player.config.shard_prompts * max(1, GROUP // size)

    def sample_shard(worker: Worker, start: int) -> Sampled:
        shard, own_seed = prompts[start : start + length], shard_seed(seed, start // length)
        return player._replace(engine=worker).write(shard, size, seed=own_seed)

    found, figures = list[list[Rollout]](), defaultdict[str, float](float)
    for groups, seen in player.engine.spread(sample_shard, range(0, len(prompts), length)):
        for name, value in seen.items():
            figures[name] = max(figures[name], value) if name == "probe_difference" else figures[name] + value
        start = len(found)
        found += [[dataclasses.replace(one, group=start + one.group) for one in group] for group in groups]
    return found, dict(figures)


def shard_seed(seed: int, number: int) -> int:
    """Return a shard's 63-bit seed, a hash of the call's seed and the shard's number (from 0)."""
    return int.from_bytes(hashlib.sha256(f"{seed} shard {number}".encode()).digest()[:8]) >> 1
