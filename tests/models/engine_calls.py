"""What the tests of the sampler have the engine's process do."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

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


def sample(prompts: Sequence[list[int]], size: int, seed: int = 1) -> list[list[Rollout]]:
    return _held[0].sample(prompts, size, seed=seed, max_tokens=12)


def load_nothing(checkpoint: Path) -> str:
    """A loader that does nothing, and says that all is well."""
    from models import engine_weights

    return _with(engine_weights, "reload", lambda worker, folder: [], checkpoint)


def load_without_readback(checkpoint: Path) -> str:
    """As if nothing of the engine's memory could be compared but what agrees."""
    from models import engine_weights

    return _with(engine_weights, "differing", lambda worker, folder: ([], 1), checkpoint)


def load_packed(checkpoint: Path, *, heads: bool = True) -> str:
    """As on a CPU where every layer computes with a packed copy of its weights; without `heads` as vLLM alone does."""
    from vllm.model_executor.layers import utils

    from models import engine_weights

    def pack(layer: Any, remove_weight: bool) -> None:
        packed = layer.weight.detach().clone()
        layer.cpu_linear = lambda x, weight, bias: torch.nn.functional.linear(x, packed, bias)

    with ExitStack() as changed:
        changed.enter_context(mock.patch.object(utils, "dispatch_cpu_unquantized_gemm", pack))
        _held[0].llm.apply_model(_pack_all)
        if not heads:
            changed.enter_context(mock.patch.object(engine_weights, "_pack_tied_heads", return_value=None))
        return load(checkpoint)


def _pack_all(model: torch.nn.Module) -> None:
    from vllm.model_executor.layers import utils

    for module in model.modules():
        if hasattr(module, "cpu_linear"):
            utils.dispatch_cpu_unquantized_gemm(module, remove_weight=False)


def serve_the_last_adapter(checkpoint: Path) -> str:
    """vLLM is asked for an adapter, and goes on with the one that it has."""
    return _with(_held[0].llm.llm_engine, "add_lora", lambda request: True, checkpoint)


def _with(place: Any, name: str, broken: Callable[..., Any], checkpoint: Path) -> str:
    sound = getattr(place, name)
    setattr(place, name, broken)
    try:
        return load(checkpoint)
    finally:
        setattr(place, name, sound)
