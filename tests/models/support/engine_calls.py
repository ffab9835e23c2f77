"""What the tests of the sampler have the engine's process do."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conf.schema import EngineConfig
from models.rollout import Rollout

if TYPE_CHECKING:
    from models.sampler import Sampler

_held: list["Sampler"] = []


def start(checkpoint: Path, config: EngineConfig) -> str:
    from models.sampler import Sampler

    _held.append(Sampler(checkpoint, config))
    return _held[0].digest


def load(checkpoint: Path) -> str:
    _held[0].load_weights(checkpoint)
    return _held[0].digest


def digest() -> str:
    return _held[0].digest


def sample(prompts: Sequence[list[int]], size: int, seed: int = 1, temperature: float = 1.0) -> list[list[Rollout]]:
    return _held[0].sample(prompts, size, seed=seed, temperature=temperature, max_tokens=12)


def cached(prompts: Sequence[list[int]]) -> list[int]:
    """How many tokens of each prompt were not read, because another's beginning was in the cache, or is being read."""
    _held[0].llm.reset_prefix_cache()
    outputs = _held[0].llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], use_tqdm=False)
    return [output.num_cached_tokens for output in outputs]


def load_nothing(checkpoint: Path) -> str:
    """A loader that does nothing, and says that all is well."""
    from models.engine import weight_sync

    return _with(weight_sync, "reload", lambda worker, folder: None, checkpoint)


def load_without_readback(checkpoint: Path) -> str:
    """As if nothing of the engine's memory could be compared but what agrees."""
    from models.engine import weight_sync

    return _with(weight_sync, "differing", lambda worker, folder: ([], [], 1), checkpoint)


def load_with_the_head_of_before(checkpoint: Path) -> str:
    """As vLLM alone does where layers compute with packed copies of their weights."""
    from models.engine import weight_sync

    return _with(weight_sync, "_pack_tied_heads", lambda model: None, checkpoint)


def serve_the_last_adapter(checkpoint: Path) -> str:
    """vLLM is asked for an adapter, and goes on with the one that it has."""
    return _with(_held[0].llm.llm_engine, "add_lora", lambda request: True, checkpoint)


def use_after_a_bad_sleep(checkpoint: Path) -> tuple[list[str], float]:
    """As on a GPU whose memory came back with other values. Returns what woke up, and the probe's difference then."""
    sampler, woken = _held[0], list[str]()
    sampler.llm.collective_rpc(_double_a_norm)
    sampler._asleep = True
    sampler.llm.wake_up = lambda tags: woken.extend(tags) or True  # type: ignore[method-assign]
    sampler.use(checkpoint)
    return woken, sampler.probe_difference


def _double_a_norm(worker: Any) -> None:
    worker.get_model().model.norm.weight.data.mul_(2)


def _with(place: Any, name: str, broken: Callable[..., Any], checkpoint: Path) -> str:
    sound = getattr(place, name)
    setattr(place, name, broken)
    try:
        return load(checkpoint)
    finally:
        setattr(place, name, sound)
