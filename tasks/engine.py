"""What runs in the engine's process: the sampler is held here from call to call."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import EngineConfig
from models.rollout import Rollout

if TYPE_CHECKING:  # vLLM is loaded in the engine's process only
    from models.sampler import Sampler

_sampler: "Sampler | None" = None


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
) -> list[list[Rollout]]:
    """Samples from a checkpoint, which is loaded first where the engine holds another one."""
    global _sampler
    if _sampler is None:
        from models.sampler import Sampler

        _sampler = Sampler(checkpoint, config, trust_remote_code=trust_remote_code)
    _sampler.wake()
    if _sampler.digest != checkpoint.name:
        _sampler.load_weights(checkpoint)
    return _sampler.sample(prompts, size, seed=seed, temperature=temperature, max_tokens=max_tokens)


def sleep() -> None:
    """Leaves the GPU to the trainer; on a CPU nothing."""
    if _sampler is not None:
        _sampler.sleep()
