"""vLLM's settings for serving adapters on top of a base checkpoint."""

from pathlib import Path
from typing import Any, get_args

from safetensors import safe_open

from conf.schema import LoraConfig


def adapter_arguments(config: LoraConfig, base: Path) -> dict[str, Any]:
    """Return vLLM's arguments for serving one adapter of the configured rank at a time on top of a base checkpoint."""
    from vllm.config.lora import MaxLoRARanks  # only the engine's process loads vLLM

    return {
        "enable_lora": True,
        "max_loras": 1,
        "max_lora_rank": min(rank for rank in get_args(MaxLoRARanks) if rank >= config.rank),
        "lora_target_modules": linear_layers(base) if config.targets == "all-linear" else list(config.targets),
    }


def linear_layers(checkpoint: Path) -> list[str]:
    """Return the module names of the linear layers in a checkpoint's blocks: matrices with a number in their path.

    By default, vLLM would also reserve memory for an adapter on the head, more than for all other layers together.
    """
    modules = set()
    for file in checkpoint.glob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                *path, module, _ = name.split(".")
                if any(part.isdecimal() for part in path) and len(tensors.get_slice(name).get_shape()) == 2:
                    modules.add(module)
    return sorted(modules)
