"""fp32 master weights and AdamW behind a model that computes in bf16."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from conf.schema import OptimizerConfig


class MasterWeights:
    """Collects the gradients of all microbatches of a step in fp32, takes the step, and writes the model back.

    What the model computes with is the master weights rounded to the model's precision. After each backward pass
    a parameter's gradient is added to the fp32 sum and freed, so the model never holds more than one at a time.
    """

    def __init__(self, model: torch.nn.Module, config: OptimizerConfig) -> None:
        self.config = config
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.masters = {name: Parameter(p.detach().float().clone()) for name, p in self.trained.items()}
        for name, parameter in self.trained.items():
            self.masters[name].grad = torch.zeros_like(self.masters[name])
            parameter.register_post_accumulate_grad_hook(self._collector(self.masters[name]))
        self.optimizer = torch.optim.AdamW(
            self.masters.values(),
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.step_count = 0

    @staticmethod
    def _collector(master: Parameter) -> Any:
        def collect(parameter: Tensor) -> None:
            assert master.grad is not None
            assert parameter.grad is not None
            master.grad += parameter.grad
            parameter.grad = None

        return collect

    @property
    def learning_rate(self) -> float:
        """The rate of the step to come: linear warm-up, then constant."""
        return self.config.learning_rate * min(1.0, (self.step_count + 1) / max(1, self.config.warmup_steps))

    def step(self) -> float:
        """One AdamW step on the collected gradients, which are then zero again. Returns their norm.

        A norm that is not finite takes no step: the weights, the moments and the step count stay as they were.
        """
        norm = float(torch.nn.utils.clip_grad_norm_(self.masters.values(), self.config.max_grad_norm))
        if math.isfinite(norm):
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate
            self.optimizer.step()
            self.step_count += 1
            self.write_back()
        self.discard()
        return norm

    def discard(self) -> None:
        """Forgets the collected gradients: those of a step that is not taken."""
        torch._foreach_zero_([master.grad for master in self.masters.values() if master.grad is not None])

    @torch.no_grad()
    def write_back(self) -> None:
        """Rounds the master weights into the model."""
        torch._foreach_copy_(list(self.trained.values()), list(self.masters.values()))

    def tensors(self) -> dict[str, Tensor]:
        """Master weights and AdamW's own, by kind and name: `master/…`, `exp_avg/…`, `exp_avg_sq/…`, `step/…`."""
        found: dict[str, Tensor] = {}
        for name, master in self.masters.items():
            found[f"master/{name}"] = master.detach()
            for moment, value in self.optimizer.state[master].items():
                found[f"{moment}/{name}"] = value
        return found

    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Goes on, bit for bit, from what `tensors` returned after `step` steps.

        Raises ValueError where those were tensors of other weights.
        """
        masters = {key.removeprefix("master/"): value for key, value in tensors.items() if key.startswith("master/")}
        if {name: value.shape for name, value in masters.items()} != {n: m.shape for n, m in self.masters.items()}:
            raise ValueError("these are not the weights that are trained here: another model, or other adapters")
        self.optimizer.state.clear()
        for key, value in tensors.items():
            kind, name = key.split("/", 1)
            master = self.masters[name]
            if kind == "master":
                master.data.copy_(value)
            else:  # a copy: what was read may be the file itself, mapped; `step` beside the weights: fused AdamW
                self.optimizer.state[master][kind] = value.to(master.device, copy=True)
        self.step_count = step
        self.write_back()
