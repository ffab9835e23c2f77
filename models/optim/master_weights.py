"""fp32 master weights and AdamW for a model that computes in bf16."""

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from jaxtyping import Float, Int16
from torch import Tensor
from torch.optim.adamw import adamw

from conf.schema import OptimizerConfig
from models.optim.trainer_state import StateError

BETAS, EPSILON = (0.9, 0.95), 1e-8  # of AdamW
MAX_GRAD_NORM = 1.0
PART = {"cpu": 2**18, "cuda": 2**24}  # elements updated at a time; on a CPU, few enough to fit in cache
HALF = 2**15  # half a unit in bf16's last place, counted in units of fp32's last place


class MasterWeights:
    """Accumulates gradients over a step's microbatches and takes the optimizer step, both in fp32.

    A bf16 parameter and a 16-bit remainder together encode an fp32 master weight. The remainder needs half the memory
    of a separate fp32 copy. An fp32 parameter is its own master weight. Each gradient is added to an fp32 sum and freed
    as soon as the backward pass has computed it, so the model never holds more than one gradient at a time.
    """

    def __init__(self, model: torch.nn.Module, config: OptimizerConfig) -> None:
        self.config = config
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.gradients = {name: _zeros(p) for name, p in self.trained.items()}
        self.exp_avg = {name: _zeros(p) for name, p in self.trained.items()}
        self.exp_avg_sq = {name: _zeros(p) for name, p in self.trained.items()}
        self.remainders: dict[str, Tensor] = {}
        for name, parameter in self.trained.items():
            if parameter.dtype == torch.bfloat16:
                self.remainders[name] = torch.zeros_like(parameter, dtype=torch.int16)
            elif parameter.dtype != torch.float32:
                raise ValueError(f"{name} has {parameter.dtype}: only bfloat16 and float32 can be trained")
            parameter.register_post_accumulate_grad_hook(_collector(self.gradients, name))
        self.step_count = 0
        self.rate_factor = 1.0

    @property
    def learning_rate(self) -> float:
        """The next step's learning rate: constant after a linear warm-up, times the scheduled `rate_factor`."""
        warmup = min(1.0, (self.step_count + 1) / max(1, self.config.warmup_steps))
        return self.config.learning_rate * self.rate_factor * warmup

    def step(self) -> float:
        """Take one AdamW step on the accumulated gradients, reset them to zero, and return their norm.

        If the norm is not finite, no step is taken: weights, moments and step count stay unchanged.
        """
        norm = float(torch.nn.utils.get_total_norm(self.gradients.values()))
        if math.isfinite(norm):
            self._adamw(min(1.0, MAX_GRAD_NORM / (norm + 1e-6)))
            self.step_count += 1
        self.discard()
        return norm

    @torch.no_grad()
    def _adamw(self, scale: float) -> None:
        for name in self.trained:
            for parameter, remainder, gradient, *moments in self._parts(name):
                master = parameter if remainder is None else join_bits(parameter, remainder)
                adamw(
                    [master],
                    [gradient.mul_(scale)],
                    [moments[0]],
                    [moments[1]],
                    [],
                    [torch.tensor(float(self.step_count), device=master.device)],
                    fused=True,
                    amsgrad=False,
                    beta1=BETAS[0],
                    beta2=BETAS[1],
                    lr=self.learning_rate,
                    weight_decay=0.0,
                    eps=EPSILON,
                    maximize=False,
                )
                if remainder is not None:
                    split_bits(master, parameter, remainder)

    @torch.no_grad()
    def round_stochastically(self, generator: torch.Generator) -> None:
        """Round the master weights to bf16 stochastically (Gupta et al. 2015, arXiv:1502.02551); drop the remainders.

        At a low learning rate, a step moves most weights by less than half a unit in bf16's last place. Rounding to
        nearest would undo such a move; stochastic rounding preserves it on average. Unmoved weights stay unchanged.
        `generator` (on the weights' device) needs a new seed for each call, or weights always round the same way.
        """
        for name in self.remainders:
            for rounded, left, *_ in self._parts(name):
                assert left is not None
                rounded.copy_(stochastic_bf16(join_bits(rounded, left), generator))
                left.zero_()

    def _parts(self, name: str) -> Iterator[tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]]:
        """Yield matching flat chunks of a parameter, its remainder (None for fp32), its gradient and its moments."""
        whole = [self.trained[name], self.gradients[name], self.exp_avg[name], self.exp_avg_sq[name]]
        size = PART[self.trained[name].device.type]
        parameters, *others = [tensor.detach().view(-1).split(size) for tensor in whole]
        remainder = self.remainders.get(name)
        remainders = [None] * len(parameters) if remainder is None else remainder.view(-1).split(size)
        yield from zip(parameters, remainders, *others, strict=True)

    def discard(self) -> None:
        """Reset the accumulated gradients to zero without taking a step."""
        torch._foreach_zero_(list(self.gradients.values()))

    def move(self, device: torch.device | str) -> None:
        """Move all but the weights themselves to a device."""
        for kind in (self.gradients, self.exp_avg, self.exp_avg_sq, self.remainders):
            kind.update({name: tensor.to(device) for name, tensor in kind.items()})

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights and optimizer state, keyed `weight/<name>`, `remainder/…`, `exp_avg/…`, `exp_avg_sq/…`."""
        moments = {"exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}
        kinds = {"weight": self.trained, "remainder": self.remainders} | moments
        return {f"{kind}/{name}": tensor.detach() for kind, named in kinds.items() for name, tensor in named.items()}

    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Restore the exact state that `tensors` returned after `step` optimizer steps.

        Raises StateError if the names, shapes or dtypes do not match those of the current state.
        """
        current = self.tensors()
        if {k: (x.shape, x.dtype) for k, x in tensors.items()} != {k: (x.shape, x.dtype) for k, x in current.items()}:
            raise StateError("the trainer state belongs to other weights: another model, or other adapters")
        for key, tensor in current.items():
            tensor.copy_(tensors[key])
        self.step_count = step


def join_bits(rounded: Float[Tensor, "..."], remainder: Int16[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return the fp32 number that `split_bits` split into a bf16 and a remainder."""
    upper = rounded.view(torch.int16).to(torch.int32).bitwise_left_shift_(16)
    return upper.add_(remainder).view(torch.float32)


def stochastic_bf16(exact: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Round each fp32 number up or down to bf16 at random, so that the expected result is the number itself.

    A number that bf16 represents exactly stays unchanged. `generator` must be on the same device as the numbers.
    """
    bits = exact.view(torch.int32)
    words = torch.empty(math.ceil(bits.numel() / 4), dtype=torch.int64, device=bits.device)
    words.random_(-(2**63), None, generator=generator)  # all 64 bits: 16 for each of four numbers
    drawn = words.view(torch.int16)[: bits.numel()].view(bits.shape)
    return (bits + drawn).add_(HALF).bitwise_right_shift_(16).to(torch.int16).view(torch.bfloat16)


def split_bits(master: Float[Tensor, "..."], rounded: Float[Tensor, "..."], remainder: Int16[Tensor, "..."]) -> None:
    """Split fp32 numbers: write the nearest bf16 (ties away from zero) to `rounded`, the rest to `remainder`.

    Read as integers, the fp32's bits equal the bf16's bits times 2¹⁶ plus a signed 16-bit remainder, so nothing is
    lost and `join_bits` is the exact inverse.
    """
    bits = master.view(torch.int32)
    upper = bits.add(HALF).bitwise_right_shift_(16)
    rounded.view(torch.int16).copy_(upper)
    remainder.copy_(bits - upper.bitwise_left_shift_(16))


def _collector(totals: Mapping[str, Tensor], name: str) -> Callable[[Tensor], None]:
    def collect(parameter: Tensor) -> None:
        assert parameter.grad is not None
        totals[name].add_(parameter.grad)
        parameter.grad = None

    return collect


def _zeros(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter, dtype=torch.float32, memory_format=torch.contiguous_format)
