"""fp32 master weights and AdamW behind a model that computes in bf16."""

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from jaxtyping import Float, Int16
from torch import Tensor
from torch.optim.adamw import adamw

from conf.schema import OptimizerConfig

PART = 2**18  # elements that a step is taken for at a time: few enough to stay in the processor's cache
HALF = 2**15  # of a bf16's last place, in an fp32's bits


class MasterWeights:
    """Collects the gradients of all microbatches of a step in fp32, and takes the step in fp32.

    A bf16 parameter's master weight is the parameter itself and a remainder of 16 bits: together they are the fp32
    number, half the memory of one beside the parameter. An fp32 parameter is its own master. After each backward pass
    a parameter's gradient is added to the fp32 sum and freed, so the model never holds more than one at a time.
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
                raise ValueError(f"{name} is of {parameter.dtype}: only bfloat16 and float32 can be trained")
            parameter.register_post_accumulate_grad_hook(_collector(self.gradients[name]))
        self.step_count = 0

    @property
    def learning_rate(self) -> float:
        """The rate of the step to come: linear warm-up, then constant."""
        return self.config.learning_rate * min(1.0, (self.step_count + 1) / max(1, self.config.warmup_steps))

    def step(self) -> float:
        """One AdamW step on the collected gradients, which are then zero again. Returns their norm.

        A norm that is not finite takes no step: the weights, the moments and the step count stay as they were.
        """
        norm = float(torch.nn.utils.get_total_norm(self.gradients.values()))
        if math.isfinite(norm):
            self._adamw(min(1.0, self.config.max_grad_norm / (norm + 1e-6)))
            self.step_count += 1
        self.discard()
        return norm

    @torch.no_grad()
    def _adamw(self, scale: float) -> None:
        """The step, on gradients times `scale`, a part of the weights at a time."""
        for name in self.trained:
            for parameter, remainder, gradient, *moments in self._parts(name):
                master = parameter if remainder is None else joined(parameter, remainder)
                adamw(
                    [master],
                    [gradient.mul_(scale)],
                    [moments[0]],
                    [moments[1]],
                    [],
                    [torch.tensor(float(self.step_count), device=master.device)],
                    fused=True,
                    amsgrad=False,
                    beta1=self.config.betas[0],
                    beta2=self.config.betas[1],
                    lr=self.learning_rate,
                    weight_decay=self.config.weight_decay,
                    eps=self.config.epsilon,
                    maximize=False,
                )
                if remainder is not None:
                    divide(master, parameter, remainder)

    @torch.no_grad()
    def settle(self, chance: torch.Generator) -> None:
        """Rounds every bf16 weight up or down by chance, the nearer the likelier, and forgets the remainders.

        A step at a low rate moves most weights by less than half of their last place: rounded to the nearest they would
        be what they were. By chance (stochastic rounding, Gupta et al. 2015, arXiv:1502.02551) the step is there in the
        mean. A weight that no step has moved stays as it is. Steps that follow upon each other must not draw the same
        `chance`, which is on the weights' device: a weight would always go the same way.
        """
        for name, remainder in self.remainders.items():
            parameter = self.trained[name].detach()
            for rounded, left in zip(parameter.view(-1).split(PART), remainder.view(-1).split(PART), strict=True):
                rounded.copy_(by_chance(joined(rounded, left), chance))
                left.zero_()

    def _parts(self, name: str) -> Iterator[tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]]:
        """Equal parts of a parameter, its remainder (None: it has none), gradient and moments, in place."""
        whole = [self.trained[name], self.gradients[name], self.exp_avg[name], self.exp_avg_sq[name]]
        parameters, *others = [tensor.detach().view(-1).split(PART) for tensor in whole]
        found = self.remainders.get(name)
        remainders = [None] * len(parameters) if found is None else found.view(-1).split(PART)
        yield from zip(parameters, remainders, *others, strict=True)

    def discard(self) -> None:
        """Forgets the collected gradients: those of a step that is not taken."""
        torch._foreach_zero_(list(self.gradients.values()))

    def tensors(self) -> dict[str, Tensor]:
        """What there is to keep, by kind and name: `weight/…`, `remainder/…`, `exp_avg/…`, `exp_avg_sq/…`."""
        kinds = {
            "weight": self.trained,
            "remainder": self.remainders,
            "exp_avg": self.exp_avg,
            "exp_avg_sq": self.exp_avg_sq,
        }
        return {f"{kind}/{name}": tensor.detach() for kind, named in kinds.items() for name, tensor in named.items()}

    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Goes on, bit for bit, from what `tensors` returned after `step` steps.

        Raises ValueError where those were tensors of other weights.
        """
        own = self.tensors()
        if {key: (x.shape, x.dtype) for key, x in tensors.items()} != {k: (x.shape, x.dtype) for k, x in own.items()}:
            raise ValueError("these are not the weights that are trained here: another model, or other adapters")
        for key, tensor in own.items():
            tensor.copy_(tensors[key])
        self.step_count = step


def joined(rounded: Float[Tensor, "..."], remainder: Int16[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The fp32 number whose upper 16 bits are a bf16's and whose lower ones are a remainder's; see `divide`."""
    upper = rounded.view(torch.int16).to(torch.int32).bitwise_left_shift_(16)
    return upper.add_(remainder).view(torch.float32)


def by_chance(exact: Float[Tensor, "..."], chance: torch.Generator) -> Float[Tensor, "..."]:
    """The bf16 above or below each fp32 number, the nearer the likelier: in the mean the number itself.

    One that is a bf16 stays what it is. `chance` is on the numbers' device.
    """
    bits = exact.view(torch.int32)
    drawn = torch.randint(0, 2 * HALF, bits.shape, generator=chance, dtype=torch.int32, device=bits.device)
    return drawn.add_(bits).bitwise_right_shift_(16).to(torch.int16).view(torch.bfloat16)


def divide(master: Float[Tensor, "..."], rounded: Float[Tensor, "..."], remainder: Int16[Tensor, "..."]) -> None:
    """Writes the nearest bf16 (halves away from zero) to `rounded` and what is lacking to `remainder`.

    Bits are divided, not values: an fp32's are its upper half's, as a bf16 has them, times 2¹⁶, and a number of 16 bits
    with a sign. So nothing is lost, and `joined` is the exact reverse.
    """
    bits = master.view(torch.int32)
    upper = bits.add(HALF).bitwise_right_shift_(16)
    rounded.view(torch.int16).copy_(upper)
    remainder.copy_(bits - upper.bitwise_left_shift_(16))


def _collector(total: Tensor) -> Callable[[Tensor], None]:
    def collect(parameter: Tensor) -> None:
        assert parameter.grad is not None
        total.add_(parameter.grad)
        parameter.grad = None

    return collect


def _zeros(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter, dtype=torch.float32, memory_format=torch.contiguous_format)
