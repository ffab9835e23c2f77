"""Low-rank adapters through peft, in place on the model."""

from typing import Any

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor
from transformers import PreTrainedModel

from conf.schema import LoraConfig


def attach(model: PreTrainedModel, config: LoraConfig) -> None:
    """Freezes the model and puts fresh adapters (which change nothing yet) beside its linear layers.

    Raises ValueError where the targets name the embeddings or the head: the two are often one tensor, and
    log-probabilities are computed with the head's plain weight.
    """
    model.requires_grad_(False)
    targets: Any = config.targets if isinstance(config.targets, str) else list(config.targets)
    if targets == "all-linear":
        head = model.get_output_embeddings()
        linear = {name for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) and m is not head}
        targets = sorted({name.rsplit(".", 1)[-1] for name in linear})
    inject_adapter_in_model(
        PeftLoraConfig(r=config.rank, lora_alpha=config.alpha, target_modules=targets),
        model,
    )
    for embedding in (model.get_input_embeddings(), model.get_output_embeddings()):
        if isinstance(embedding, LoraLayer):
            raise ValueError("lora.targets names the embeddings or the head: adapt the linear layers between them")


@torch.no_grad()
def merged_weights(model: PreTrainedModel) -> dict[str, Tensor]:
    """The model's weights with the adapters added in fp32 and rounded once, under the names of the plain model."""
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if ".lora_" not in name:
            weights[name.replace(".base_layer", "")] = tensor
    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            layer: Any = module
            base, down, up = layer.get_base_layer().weight, layer.lora_A["default"], layer.lora_B["default"]
            # not peft's get_delta_weight: that rounds the product to the model's precision
            delta = layer.scaling["default"] * (up.weight.float() @ down.weight.float())
            delta = delta.T if layer.fan_in_fan_out else delta
            weights[f"{name}.weight"] = (base.float() + delta).to(base.dtype)
    return weights
