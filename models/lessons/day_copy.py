"""The day copy: the champion with an adapter that each lesson moves by a chosen effect, within limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from conf.schema import LoraConfig
from conf.sections.teaching import TeachConfig
from models import lora
from models.hf.hardware import resolve_device
from models.hf.loading import load_model
from models.lessons.preference_data import Example
from models.packing.logprobs import token_logprobs
from models.packing.packing import Group, Pack, hidden_states, pack
from models.packing.self_check import choose_packing, packed_logprobs

SEED = 0  # of the adapter's initial values
HALVINGS = 3  # before a lesson is refused
ALIKE = 0.1  # a measured change so near the intended one, relative to it, is taken
CORRECTIONS = 2  # of the length of a step, so that the measured change is the intended one
FARTHEST = 4.0  # times that a correction lengthens or shortens a step at most
NOTHING = 1e-12  # a gradient's squared norm below which nothing can be learnt

# From an answer's log-probabilities by the day copy and by the champion, nats, one tensor [T] an answer each: what each
# token's log-probability counts in the change that is wanted, and which share of a whole step is wanted, 0 to 1.
Credit = Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Sequence[Tensor], float]]


@dataclass(frozen=True)
class Taught:
    """What a lesson did.

    `intended`, `change`: Σ over the answers' tokens of credit × change of log-probability, nats. `kl`: KL divergence of
    the copy before from the copy after, mean over the tokens of the answers shown, nats. `day_kl`: of the champion from
    the copy, over the anchors' tokens. A lesson that is not `learnt` left the copy as it was. `guessed`, of a pick:
    whether the copy before it preferred the chosen answer; None if it preferred none.
    """

    learnt: bool
    intended: float
    change: float
    kl: float
    day_kl: float
    halvings: int
    guessed: bool | None = None


class DayCopy:
    """A champion and an adapter, both in fp32. On a CPU the same lessons in the same order give the same bits.

    In bf16 a lesson's effect would be lost in rounding: a whole answer's log-probability is off by some 0.3 nats.
    """

    def __init__(self, champion: Path, config: TeachConfig, anchors: Sequence[Example] = ()) -> None:
        """`anchors`: prompts and answers, as token ids, on which the distance from the champion is measured."""
        self.config, self.device = config, resolve_device("auto")
        self.model = load_model(champion, torch.float32, self.device)
        self.packs = choose_packing(self.model) is packed_logprobs
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            lora.attach(self.model, LoraConfig(rank=config.rank, alpha=2 * config.rank))
        self.model.eval()
        self.adapter: dict[str, Tensor] = {}
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                self.adapter[name] = parameter
        groups = [Group(prompt, [answer], [row]) for row, (prompt, answer) in enumerate(anchors)]
        self._anchors = pack(groups, self.device) if groups else None
        with torch.no_grad(), lora.disabled(self.model):
            self._at_anchors = self._distributions(self._anchors) if self._anchors else None

    def snapshot(self) -> dict[str, Tensor]:
        """Return a copy of the adapter."""
        return {name: parameter.detach().clone() for name, parameter in self.adapter.items()}

    @torch.no_grad()
    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Go back to a copy of the adapter."""
        for name, parameter in self.adapter.items():
            parameter.copy_(snapshot[name])

    @torch.no_grad()
    def logprobs(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the log-probabilities of each answer's tokens [T], in nats."""
        packed = pack([Group(prompt, answers, range(len(answers)))], self.device)
        return self._tokens(self._distributions(packed), packed)

    @torch.no_grad()
    def day_kl(self) -> float:
        """Return the mean KL(champion ‖ copy) over the anchors' tokens, nats; 0 without anchors."""
        if self._anchors is None or self._at_anchors is None:
            return 0.0
        return _kl(self._at_anchors, self._distributions(self._anchors))

    def step(self, prompt: Sequence[int], answers: Sequence[Sequence[int]], credit: Credit) -> Taught:
        """Move the adapter along the gradient of Σ credit × log-probability until the change is the intended one.

        The first length of the step is the intended change over the gradient's squared norm, which is right to first
        order; what is measured after it corrects the length. A step that exceeds one of the KL limits is halved up to
        three times, and then taken back.
        """
        packed = pack([Group(prompt, answers, range(len(answers)))], self.device)
        before = self.snapshot()
        weights, share, old, gradient = self._gradient(packed, credit)
        intended, norm = share * self.config.step_nats, _squared(gradient)
        if intended <= 0 or norm < NOTHING:
            return Taught(False, intended, 0.0, 0.0, self.day_kl(), 0)
        length = intended / norm
        change, new = self._try(before, gradient, length, packed, weights, old)
        for _ in range(CORRECTIONS):
            if abs(change - intended) <= ALIKE * intended:
                break
            factor = intended / change if change > 0 else 1 / FARTHEST
            length *= min(max(factor, 1 / FARTHEST), FARTHEST)
            change, new = self._try(before, gradient, length, packed, weights, old)
        kl, day_kl, halvings = _kl(old, new), self.day_kl(), 0
        while kl > self.config.kl_per_lesson or day_kl > self.config.kl_of_day:
            if halvings == HALVINGS:
                self.restore(before)
                return Taught(False, intended, 0.0, kl, self.day_kl(), halvings)
            length, halvings = length / 2, halvings + 1
            change, new = self._try(before, gradient, length, packed, weights, old)
            kl, day_kl = _kl(old, new), self.day_kl()
        return Taught(True, intended, change, kl, day_kl, halvings)

    def literal_step(
        self, prompt: Sequence[int], answers: Sequence[Sequence[int]], credit: Credit, rate: float
    ) -> Taught:
        """Move the adapter by rate × the gradient of Σ credit × log-probability, whatever comes of it."""
        packed = pack([Group(prompt, answers, range(len(answers)))], self.device)
        before = self.snapshot()
        weights, _, old, gradient = self._gradient(packed, credit)
        change, new = self._try(before, gradient, rate, packed, weights, old)
        return Taught(True, rate * _squared(gradient), change, _kl(old, new), self.day_kl(), 0)

    def _gradient(self, packed: Pack, credit: Credit) -> tuple[Sequence[Tensor], float, Tensor, dict[str, Tensor]]:
        """Return the credit's weights and share, the distributions [tokens, vocabulary] now, and the gradient."""
        with torch.no_grad(), lora.disabled(self.model):
            champion = self._tokens(self._distributions(packed), packed)
        logprobs, old = self._forward(packed)
        weights, share = credit(logprobs.detach().split(packed.lengths), champion)
        objective = (torch.cat([*weights]).to(logprobs) * logprobs).sum()
        gradients = torch.autograd.grad(objective, list(self.adapter.values()))
        return weights, share, old, dict(zip(self.adapter, gradients, strict=True))

    @torch.no_grad()
    def _try(
        self,
        before: dict[str, Tensor],
        gradient: dict[str, Tensor],
        length: float,
        packed: Pack,
        weights: Sequence[Tensor],
        old: Tensor,
    ) -> tuple[float, Tensor]:
        """Set the adapter to `before` + length × gradient. Return the change, and the distributions after it."""
        for name, parameter in self.adapter.items():
            parameter.copy_(before[name] + length * gradient[name])
        new = self._distributions(packed)
        differences = [a - b for a, b in zip(self._tokens(new, packed), self._tokens(old, packed), strict=True)]
        return float(sum((w.to(d) * d).sum() for w, d in zip(weights, differences, strict=True))), new

    def _forward(self, packed: Pack) -> tuple[Float[Tensor, "tokens"], Float[Tensor, "tokens vocabulary"]]:
        """Return the tokens' log-probabilities, differentiable, and all log-probabilities, which are not."""
        if self.packs:
            head: Any = self.model.get_output_embeddings()
            hidden = hidden_states(self.model, packed)
            with torch.no_grad():
                everything = (hidden.detach() @ head.weight.T).float().log_softmax(dim=-1)
            return token_logprobs(hidden, head.weight, packed.targets)[0], everything
        rows = []
        for group in packed.groups:
            for answer in group.completions:
                ids = torch.tensor([[*group.prompt, *answer]], device=self.device)
                logits = self.model(input_ids=ids[:, :-1], use_cache=False).logits[0, len(group.prompt) - 1 :]
                rows.append(logits.float().log_softmax(dim=-1))
        everything = torch.cat(rows)
        return everything.gather(1, packed.targets[:, None]).squeeze(1), everything.detach()

    def _distributions(self, packed: Pack) -> Float[Tensor, "tokens vocabulary"]:
        return self._forward(packed)[1]

    @staticmethod
    def _tokens(distributions: Tensor, packed: Pack) -> list[Tensor]:
        return list(distributions.gather(1, packed.targets[:, None]).squeeze(1).split(packed.lengths))


def _kl(old: Float[Tensor, "tokens vocabulary"], new: Float[Tensor, "tokens vocabulary"]) -> float:
    """Return the mean over tokens of KL(old ‖ new), of log-probabilities, in nats."""
    return float((old.exp() * (old - new)).sum(dim=-1).mean())


def _squared(gradient: dict[str, Tensor]) -> float:
    return float(sum(part.square().sum() for part in gradient.values()))
