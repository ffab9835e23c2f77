"""Low-rank adapters through peft: attach them, save them in peft's format, merge them into their base's weights."""

import models.hf.lean  # noqa: F401  # isort: skip  # before transformers and peft
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from conf.schema import LoraConfig
from models.hf.checkpoint import digest_folder
from models.optim.master_weights import stochastic_bf16
from models.optim.trainer_state import StateError

WEIGHTS, SETTINGS = "adapter_model.safetensors", "adapter_config.json"


def attach(model: PreTrainedModel, config: LoraConfig, blocks: Sequence[int] | None = None) -> None:
    """Freeze the model and attach fresh adapters to its linear layers. Fresh adapters do not change the model's output.

    `blocks`: the numbers of the transformer blocks that get adapters; None: all. Raises ValueError if the targets
    include the embeddings or the head, because the two often share a tensor, and log-probabilities are computed with
    the head's plain weight.
    """
    model.requires_grad_(False)
    targets: Any = config.targets if isinstance(config.targets, str) else list(config.targets)
    if targets == "all-linear":
        head = model.get_output_embeddings()
        linear = {name for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) and m is not head}
        targets = sorted({name.rsplit(".", 1)[-1] for name in linear})
    inject_adapter_in_model(
        PeftLoraConfig(
            r=config.rank,
            lora_alpha=config.alpha,
            lora_dropout=config.dropout,
            target_modules=targets,
            bias="none",
            layers_to_transform=None if blocks is None else [*blocks],
        ),
        model,
    )
    for embedding in (model.get_input_embeddings(), model.get_output_embeddings()):
        if isinstance(embedding, LoraLayer):
            raise ValueError("lora.targets names the embeddings or the head: adapt the linear layers between them")


@contextmanager
def disabled(model: torch.nn.Module) -> Iterator[None]:
    """Disable the adapters inside the block, so that the model computes what its base does."""
    layers: list[Any] = [module for module in model.modules() if isinstance(module, LoraLayer)]
    for layer in layers:
        layer._disable_adapters = True  # peft's own switch would also freeze them
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


@contextmanager
def dropout(model: torch.nn.Module, on: bool) -> Iterator[None]:
    """Turn the adapters' dropout on or off inside the block, and off after it. Other dropout stays as it is."""
    layers: list[Any] = [module.lora_dropout for module in model.modules() if isinstance(module, LoraLayer)]
    for layer in layers:
        layer.train(on)
    try:
        yield
    finally:
        for layer in layers:
            layer.eval()


def save_adapter(model: PreTrainedModel, folder: Path) -> None:
    """Write the adapters in peft's format: adapter_model.safetensors and adapter_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous() for name, tensor in _adapters(model).items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    peft: Any = model.peft_config
    config = peft["default"].to_dict()
    # not peft's save_pretrained, whose sets change order between runs and would change the folder's digest
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
    (folder / SETTINGS).write_text(json.dumps(plain, indent=2, sort_keys=True) + "\n")


def load_adapter(model: PreTrainedModel, adapter: Path) -> None:
    """Load a saved adapter into a model's attached adapters. Raises StateError if their names or shapes differ."""
    saved, attached = load_file(adapter / WEIGHTS), _adapters(model)
    if {name: tensor.shape for name, tensor in saved.items()} != {name: t.shape for name, t in attached.items()}:
        raise StateError(f"{adapter}: this adapter has another rank or other targets than `lora`; set those")
    for name, tensor in attached.items():
        tensor.copy_(saved[name])


@torch.no_grad()
def merge_in_memory(model: PreTrainedModel, adapter: Path) -> None:
    """Merge a saved adapter into its loaded base. Rounding is the same as in `models.hf.merging.merge` on disk."""
    PeftModel.from_pretrained(model, adapter)  # adds the adapters to the model in place
    merged = merged_weights(model, rounding_of(adapter))
    adapted = [(name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer)]
    for name, module in adapted:
        model.set_submodule(name, module.get_base_layer())
    model.load_state_dict(merged)
    model.requires_grad_(True)


def rounding_of(adapter: Path) -> torch.Generator:
    """Return the random generator that rounds an adapter's merged weights. It is seeded by the adapter's digest."""
    return torch.Generator().manual_seed(int(digest_folder(adapter)[:15], 16))


def _adapters(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the tensors of a model's attached adapters, under the names that they have in peft's files."""
    return {
        f"base_model.model.{name.replace('.default.', '.')}": tensor
        for name, tensor in model.state_dict().items()
        if ".lora_" in name
    }


@torch.no_grad()
def merged_weights(model: PreTrainedModel, generator: torch.Generator) -> dict[str, Tensor]:
    """Return the model's weights with the adapters merged in, under the names that the plain model uses.

    The sum is computed in fp32 and rounded once. Rounding to bf16 is stochastic (`generator`: on the model's device),
    because rounding to nearest would lose the smallest changes.
    """
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if ".lora_" not in name:
            weights[name.replace(".base_layer", "")] = tensor
    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            layer: Any = module
            base, down, up = layer.get_base_layer().weight, layer.lora_A["default"], layer.lora_B["default"]
            # not peft's get_delta_weight, which rounds the product to the model's precision
            delta = layer.scaling["default"] * (up.weight.float() @ down.weight.float())
            delta = delta.T if layer.fan_in_fan_out else delta
            exact = base.float() + delta
            merged = stochastic_bf16(exact, generator) if base.dtype == torch.bfloat16 else exact.to(base.dtype)
            weights[f"{name}.weight"] = merged
    return weights
