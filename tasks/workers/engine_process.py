"""The functions of the engine's process, by night and by day. The process keeps the sampler between calls."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import EngineConfig
from models.rollout import Rollout

if TYPE_CHECKING:  # only the engine's process loads vLLM
    from models.sampler import Sampler

_sampler: "Sampler | None" = None


def prepare() -> None:
    """Import the engine's modules ahead of time, so that the first call does not have to."""
    import models.sampler  # noqa: F401


def sampler_at(checkpoint: Path, config: EngineConfig, trust_remote_code: bool = False) -> "Sampler":
    """Return the engine's sampler. If the engine does not hold the checkpoint, load it first."""
    global _sampler
    if _sampler is None:
        from models.sampler import Sampler

        _sampler = Sampler(checkpoint, config, trust_remote_code=trust_remote_code)
    _sampler.use(checkpoint)
    return _sampler


def sample(
    checkpoint: Path,
    config: EngineConfig,
    prompts: Sequence[list[int]],
    size: int,
    *,
    seed: int,
    temperature: float,
    max_tokens: int,
    trust_remote_code: bool = False,
    fresh: bool = True,
) -> tuple[list[list[Rollout]], dict[str, float]]:
    """Sample from a checkpoint, loading it first if the engine holds a different one.

    Returns a group of `size` completions for each prompt, and the call's metrics: the seconds until the engine held the
    checkpoint (`sync`), the seconds that sampling took (`generate`), and how far the engine's log-probabilities of the
    sync probe are from the trainer's (`probe_difference`, in nats per token). `fresh`: see `Sampler.sample`.
    """
    started = time.perf_counter()
    sampler = sampler_at(checkpoint, config, trust_remote_code)
    synced = time.perf_counter()
    groups = sampler.sample(prompts, size, seed=seed, temperature=temperature, max_tokens=max_tokens, fresh=fresh)
    return groups, {
        "sync": synced - started,
        "generate": time.perf_counter() - synced,
        "probe_difference": sampler.probe_difference,
    }


def kv_tokens(checkpoint: Path, config: EngineConfig, trust_remote_code: bool = False) -> int:
    """Return how many tokens fit in the engine's key/value cache."""
    return sampler_at(checkpoint, config, trust_remote_code).kv_tokens


def logprobs(
    checkpoint: Path, config: EngineConfig, texts: Sequence[list[int]], trust_remote_code: bool = False
) -> list[list[float]]:
    """Return a checkpoint's log-probability of each token after the first in each text (see `Sampler.logprobs`)."""
    return sampler_at(checkpoint, config, trust_remote_code).logprobs(texts)


def sleep() -> None:
    """Release the GPU for the trainer (see `Sampler.sleep`). On a CPU, do nothing."""
    if _sampler is not None:
        _sampler.sleep()
