"""fp32 master weights and AdamW for a model that computes in bf16."""

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from jaxtyping import Float, Int16, Int32
from torch import Tensor
from torch.optim.adamw import adamw

from conf.schema import OptimizerConfig
from models.optim.trainer_state import StateError

BETAS, EPSILON = (0.9, 0.95), 1e-8  # of AdamW
MAX_GRAD_NORM = 1.0
PART = {"cpu": 2**18, "cuda": 2**24}  # elements updated at a time; on a CPU, few enough to fit in cache
PLACE = 2**16  # a unit in bf16's last place, counted in units of fp32's last place


class MasterWeights:
    """Accumulates gradients over a step's microbatches and takes the optimizer step, both in fp32.

    A bf16 parameter and 16 more bits together encode an fp32 master weight, in half the memory of a separate fp32 copy.
    The parameter is the master weight rounded up or down, by a threshold drawn for each weight with `seed`. Rounded to
    nearest, no weight would change before a low learning rate's steps have added up to half a unit in bf16's last
    place. With thresholds, the weights change in expectation as their masters do, and one that stays does not flicker,
    as it would if each step drew anew (Gupta et al. 2015, arXiv:1502.02551). An fp32 parameter is its own master
    weight. Each gradient is added to an fp32 sum and freed as soon as the backward pass has computed it, so the model
    never holds more than one gradient at a time.
    """

    def __init__(self, model: torch.nn.Module, config: OptimizerConfig, seed: int = 0) -> None:
        self.config = config
        self.seed = torch.tensor(seed)
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.gradients = {name: _zeros(p) for name, p in self.trained.items()}
        self.exp_avg = {name: _zeros(p) for name, p in self.trained.items()}
        self.exp_avg_sq = {name: _zeros(p) for name, p in self.trained.items()}
        self.lower: dict[str, Tensor] = {}  # the masters' lower halves
        for name, parameter in self.trained.items():
            if parameter.dtype == torch.bfloat16:
                self.lower[name] = torch.zeros_like(parameter, dtype=torch.int16)
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
        device = next(iter(self.trained.values())).device
        generator = torch.Generator(device).manual_seed(int(self.seed))  # each step draws the same thresholds
        for name in self.trained:
            for parameter, lower, gradient, *moments in self._parts(name):
                if lower is None:
                    self._move(parameter, gradient.mul_(scale), *moments)
                else:
                    thresholds = draw_thresholds(parameter, generator)
                    master = join_bits(parameter, lower, thresholds)
                    self._move(master, gradient.mul_(scale), *moments)
                    split_bits(master, parameter, lower, thresholds)

    def _move(self, master: Tensor, gradient: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor) -> None:
        adamw(
            [master],
            [gradient],
            [exp_avg],
            [exp_avg_sq],
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

    def _parts(self, name: str) -> Iterator[tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]]:
        """Yield matching flat chunks of a parameter, its lower half (None for fp32), its gradient and its moments."""
        whole = [self.trained[name], self.gradients[name], self.exp_avg[name], self.exp_avg_sq[name]]
        size = PART[self.trained[name].device.type]
        parameters, *others = [tensor.detach().view(-1).split(size) for tensor in whole]
        lower = self.lower.get(name)
        lowers = [None] * len(parameters) if lower is None else lower.view(-1).split(size)
        yield from zip(parameters, lowers, *others, strict=True)

    def discard(self) -> None:
        """Reset the accumulated gradients to zero without taking a step."""
        torch._foreach_zero_(list(self.gradients.values()))

    def move(self, device: torch.device | str) -> None:
        """Move all but the weights themselves to a device."""
        for kind in (self.gradients, self.exp_avg, self.exp_avg_sq, self.lower):
            kind.update({name: tensor.to(device) for name, tensor in kind.items()})

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights and optimizer state, keyed `weight/<name>`, `lower/…`, `exp_avg/…`, `exp_avg_sq/…`.

        The thresholds' seed is among them, keyed `seed`: without it, `lower` is of no use.
        """
        moments = {"exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}
        kinds = {"weight": self.trained, "lower": self.lower} | moments
        named = {f"{kind}/{name}": tensor.detach() for kind, own in kinds.items() for name, tensor in own.items()}
        return named | {"seed": self.seed}

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


def draw_thresholds(like: Tensor, generator: torch.Generator) -> Int32[Tensor, "..."]:
    """Return a random whole number from 0 to 2¹⁶ − 1 for each element. `generator` must be on the same device."""
    words = torch.empty(math.ceil(like.numel() / 4), dtype=torch.int64, device=like.device)
    words.random_(-(2**63), None, generator=generator)  # all 64 bits: 16 for each of four numbers
    drawn = words.view(torch.int16)[: like.numel()].view(like.shape)
    return drawn.to(torch.int32).bitwise_and_(PLACE - 1)


def stochastic_bf16(exact: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Round each fp32 number up or down to bf16 at random, so that the expected result is the number itself.

    A number that bf16 represents exactly stays unchanged. `generator` must be on the same device as the numbers.
    """
    return _rounded(exact.view(torch.int32), draw_thresholds(exact, generator)).view(torch.bfloat16)


def split_bits(
    master: Float[Tensor, "..."],
    rounded: Float[Tensor, "..."],
    lower: Int16[Tensor, "..."],
    thresholds: Int32[Tensor, "..."],
) -> None:
    """Split fp32 numbers: write one of the two nearest bf16 to `rounded`, and the number's lower 16 bits to `lower`.

    The bf16 is the one away from zero if the lower bits and the threshold add up to a unit in its last place. So it
    changes only when the master crosses the threshold. `join_bits` is the exact inverse.
    """
    bits = master.view(torch.int32)
    rounded.view(torch.int16).copy_(_rounded(bits, thresholds))
    lower.copy_(bits)


def join_bits(
    rounded: Float[Tensor, "..."], lower: Int16[Tensor, "..."], thresholds: Int32[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Return the fp32 numbers that `split_bits` split with these thresholds, or the bf16s where `lower` is 0 yet."""
    upper = rounded.view(torch.int16).to(torch.int32).bitwise_left_shift_(16)
    above = thresholds.add(lower).bitwise_and_(PLACE - 1)
    return upper.add_(above).sub_(thresholds).view(torch.float32)


def _rounded(bits: Int32[Tensor, "..."], thresholds: Int32[Tensor, "..."]) -> Int16[Tensor, "..."]:
    return bits.add(thresholds).bitwise_right_shift_(16).to(torch.int16)


def _collector(totals: Mapping[str, Tensor], name: str) -> Callable[[Tensor], None]:
    def collect(parameter: Tensor) -> None:
        assert parameter.grad is not None
        totals[name].add_(parameter.grad)
        parameter.grad = None

    return collect


def _zeros(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter, dtype=torch.float32, memory_format=torch.contiguous_format)
