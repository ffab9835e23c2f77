"""RMSNorm and gated feed-forward layers whose custom backward passes need less memory than autograd's.

For the backward pass, RMSNorm in transformers keeps three copies of its input, two of them in fp32. A gated
feed-forward layer keeps the gate, the activated gate, the factor (the up projection's output) and the product of the
last two. Here, RMSNorm keeps its input and one number per row, and a gated layer keeps the gate and the factor.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import linear, silu
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

PROBE_TOKENS = 4
Forward = Callable[[Tensor], Tensor]


def make_lean(model: PreTrainedModel) -> None:
    """Replace the forward passes of the model's RMSNorms and gated feed-forward layers with lean ones, in place.

    Modules of a class are changed only if the new forward pass matches the original on random input.
    """
    compared: dict[type, bool] = {}
    for module in model.modules():
        lean = _lean_forward(module)
        if lean is not None:
            if type(module) not in compared:
                compared[type(module)] = _agree(module, lean)
            if compared[type(module)]:
                module.forward = lean


def recompute_layers(model: PreTrainedModel) -> bool:
    """Let each layer save only its input, and compute the rest again in the backward pass. Gradients stay the same.

    Return False, without a change, if the layers already do so, or if the architecture has no list of layers.

    Chen et al. 2016, arXiv 1604.06174. transformers' own switch works only in training mode, which turns dropout on.
    """
    layers: Any = getattr(model.base_model, "layers", [])
    plain = [layer for layer in layers if not isinstance(layer.forward, partial)]
    for layer in plain:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    return bool(plain)


class _RmsNorm(torch.autograd.Function):
    """inputs ÷ √(mean square + epsilon) · weight (Zhang and Sennrich 2019, arXiv 1910.07467, equation 4).

    As in transformers, the quotient is computed in fp32 and rounded before it is multiplied by the weight.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        scale = inputs.float().square().mean(-1, keepdim=True).add_(epsilon).rsqrt_()
        ctx.save_for_backward(inputs, weight, scale)
        return (inputs * scale).to(inputs.dtype) * weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:
        """Return the gradients. With n = x · s: dx = s · (g · w − n · mean(g · w · n)), dw = Σ g · n over all rows."""
        inputs, weight, scale = ctx.saved_tensors
        gradient, normed = gradients[0], inputs * scale
        product = gradient * normed
        d_weight = product.flatten(0, -2).sum(0).to(weight.dtype) if ctx.needs_input_grad[1] else None
        mean = (product @ weight.to(product.dtype)).unsqueeze(-1).div_(inputs.shape[-1])
        d_inputs = torch.addcmul((gradient * weight).to(normed.dtype), normed, mean, value=-1).mul_(scale)
        return d_inputs.to(inputs.dtype), d_weight, None


class _Gated(torch.autograd.Function):
    """silu(gate) · factor (SwiGLU: Shazeer 2020, arXiv 2002.05202, equation 6)."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(gate, factor)
        return silu(gate) * factor

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        gate, factor = ctx.saved_tensors
        gradient = gradients[0]
        return torch.ops.aten.silu_backward(gradient * factor, gate), gradient * silu(gate)


class _GatedDown(torch.autograd.Function):
    """(silu(gate) · factor) · weightᵀ: gating and down projection in one, so that the gated product is not kept."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, factor: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(gate, factor, weight)
        return linear(silu(gate) * factor, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the gradients of gate, factor and weight, each in its input's shape; None for a frozen weight."""
        gate, factor, weight = ctx.saved_tensors
        gradient, activated = gradients[0], silu(gate)
        d_weight: Tensor | None = None
        if ctx.needs_input_grad[2]:
            d_weight = gradient.flatten(0, -2).T @ (activated * factor).flatten(0, -2)
        d_product = gradient @ weight
        d_factor = activated.mul_(d_product)
        return torch.ops.aten.silu_backward(d_product.mul_(factor), gate), d_factor, d_weight


def _lean_forward(module: Any) -> Forward | None:
    """Return a lean forward pass that might replace a module's own, or None if there is none for its kind."""
    if type(module).__name__.endswith("RMSNorm"):
        epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
        return None if epsilon is None or module.weight is None else lambda x: _RmsNorm.apply(x, module.weight, epsilon)
    if all(hasattr(module, name) for name in ("gate_proj", "up_proj", "down_proj", "act_fn")):
        return partial(_feed_forward, module)
    return None


def _feed_forward(module: Any, inputs: Tensor) -> Tensor:
    gate, factor, down = module.gate_proj(inputs), module.up_proj(inputs), module.down_proj
    if type(down) is Linear and down.bias is None:
        return _GatedDown.apply(gate, factor, down.weight)
    return down(_Gated.apply(gate, factor))  # e.g. a layer with an adapter


@torch.no_grad()
def _agree(module: Any, lean: Forward) -> bool:
    weight: Tensor = module.weight if hasattr(module, "weight") else module.gate_proj.weight
    chance = torch.Generator().manual_seed(0)
    inputs = torch.randn(1, PROBE_TOKENS, weight.shape[-1], generator=chance).to(weight)
    try:
        return torch.allclose(lean(inputs), module(inputs), rtol=1e-2, atol=1e-4)
    except (RuntimeError, TypeError, AttributeError):  # the module computes something else
        return False
