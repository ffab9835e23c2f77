"""The day copy: the champion plus an adapter that each lesson moves by a chosen amount, within limits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from conf.sections.teaching import ADAPTED, DAY_ADAPTER, TeachConfig
from models.hf import lora
from models.hf.hardware import resolve_device
from models.hf.loading import load_model
from models.lessons.outcome import LessonOutcome
from models.lessons.partly_frozen import Distributions, Hidden, PartlyFrozen
from models.lessons.preference_data import Example
from models.packing.packing import Pack, answer_groups, pack

SEED = 0  # for the adapter's initial values
HALVINGS = 3  # number of times a step is halved before its lesson is refused
ALIKE = 0.1  # largest relative error of the measured change that needs no correction
CORRECTIONS = 2  # how often, at most, a step's length is corrected towards the intended change
FARTHEST = 4.0  # largest factor by which a correction lengthens or shortens a step
TOO_MUCH = "it would have changed the model too much by day; the night may learn it"
NOTHING_LEFT = "nothing is left to learn from it"
NOTHING = 1e-12  # squared gradient norm below which nothing can be learned

Adapter = dict[str, Tensor]

# Takes the answers' log-probabilities under the day copy and under the champion (nats, one tensor [T] per answer).
# Returns each token's weight in the sum of log-probabilities that the lesson raises, and the share of a full step.
Credit = Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Sequence[Tensor], float]]


@dataclass
class _View:
    """A prompt's answers before a lesson: the copy's distributions (`now`) and the `champion`'s log-probabilities [T].

    `lower`: see `PartlyFrozen`. `logprobs`: the copy's log-probabilities [T], through which the adapter's gradient can
    be computed once.
    """

    prompt: list[int]
    answers: list[list[int]]
    packed: Pack
    lower: Hidden | None
    now: Distributions
    champion: list[Tensor]
    logprobs: list[Tensor]


class DayCopy:
    """The champion plus an adapter, both in fp32. On a CPU, the same lessons in the same order give the same bits.

    In bf16, rounding changes a whole answer's log-probability by about 0.3 nats, which would hide a lesson's effect.
    """

    def __init__(
        self, champion: Path, config: TeachConfig, anchors: Sequence[Example] = (), trust_remote_code: bool = False
    ) -> None:
        """Load the champion. `anchors`: see `anchor`."""
        self.config, self.device = config, resolve_device("auto")
        self.model = load_model(champion, torch.float32, self.device, trust_remote_code)
        count = self.model.config.get_text_config().num_hidden_layers
        first = count - math.ceil(ADAPTED * count)
        self._pass = PartlyFrozen(self.model, first)
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            lora.attach(self.model, DAY_ADAPTER, range(first, count))
        self.model.eval()
        self.adapter: Adapter = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self._view: _View | None = None
        self.anchor(anchors)

    def anchor(self, examples: Sequence[Example]) -> None:
        """Set the prompts and answers (token ids) on which `day_kl` compares the copy with the champion."""
        pairs = [(prompt, [answer]) for prompt, answer in examples if answer]
        self._anchors = self._packed(pairs) if pairs else None
        if self._anchors:
            with torch.no_grad(), lora.disabled(self.model):
                self._at_anchors = self._pass(self._anchors)

    def snapshot(self) -> Adapter:
        """Return a copy of the adapter."""
        return {name: parameter.detach().clone() for name, parameter in self.adapter.items()}

    @torch.no_grad()
    def restore(self, snapshot: Adapter) -> None:
        """Restore the adapter from a snapshot."""
        self._view = None
        for name, parameter in self.adapter.items():
            parameter.copy_(snapshot[name])

    @torch.no_grad()
    def logprobs(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the log-probabilities of each answer's tokens [T], in nats."""
        return _tokens(self._pass(self._packed([(prompt, answers)]))[0], answers)

    def states(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[Tensor] | None:
        """Return the mean over each answer's tokens of the frozen layers' output [width]; None if it is not kept.

        A pack leaves out each answer's last token, so another token is added that does not count.
        """
        packed = self._packed([(prompt, [[*answer, 0] for answer in answers])])
        if (lower := self._pass.lower(packed)) is None:
            return None
        read = lower[0, packed.predictors].split(packed.lengths)
        return [each[1:].mean(dim=0) for each in read]

    @torch.no_grad()
    def day_kl(self) -> float:
        """Return the mean KL(champion ‖ copy) over the anchors' tokens, in nats; 0 without anchors."""
        if not self._anchors:
            return 0.0
        champion, lower = self._at_anchors
        return _kl(champion, self._pass(self._anchors, lower)[0])

    def prepare(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> None:
        """Compute what a lesson on these answers needs first: it becomes shorter, with the same result."""
        self._viewed(prompt, answers)

    def step(self, prompt: Sequence[int], answers: Sequence[Sequence[int]], credit: Credit) -> LessonOutcome:
        """Move the adapter along the gradient of Σ credit × log-probability until this sum has changed as intended.

        The first step length, the intended change divided by the squared gradient norm, is exact to first order. If the
        measured change differs from the intended one, the length is corrected, at most twice. A step that exceeds a KL
        limit is halved up to three times. If it still exceeds a limit, it is undone.
        """
        before, view = self.snapshot(), self._viewed(prompt, answers)
        weights, share, gradient = self._credited(view, credit)
        intended, norm = share * self.config.step_nats, _squared(gradient)
        if intended <= 0 or norm < NOTHING:
            return LessonOutcome(False, 0.0, 0.0, why=NOTHING_LEFT, day_kl=self.day_kl(), intended_nats=intended)
        length = intended / norm
        change, new = self._try(before, gradient, length, view, weights)
        for _ in range(CORRECTIONS):
            if abs(change - intended) <= ALIKE * intended:
                break
            factor = intended / change if change > 0 else 1 / FARTHEST
            length *= min(max(factor, 1 / FARTHEST), FARTHEST)
            change, new = self._try(before, gradient, length, view, weights)
        kl, day_kl = _kl(view.now, new), self.day_kl()
        for halvings in range(HALVINGS + 1):
            if kl <= self.config.kl_per_lesson and day_kl <= self.config.kl_of_day:
                return LessonOutcome(True, change, kl, day_kl=day_kl, intended_nats=intended, halvings=halvings)
            if halvings < HALVINGS:
                length /= 2
                change, new = self._try(before, gradient, length, view, weights)
                kl, day_kl = _kl(view.now, new), self.day_kl()
        self.restore(before)
        return LessonOutcome(
            False, 0.0, kl, why=TOO_MUCH, day_kl=self.day_kl(), intended_nats=intended, halvings=HALVINGS
        )

    def literal_step(
        self, prompt: Sequence[int], answers: Sequence[Sequence[int]], credit: Credit, rate: float
    ) -> LessonOutcome:
        """Move the adapter by rate × the gradient of Σ credit × log-probability, with no limits or corrections."""
        before, view = self.snapshot(), self._viewed(prompt, answers)
        weights, _, gradient = self._credited(view, credit)
        change, new = self._try(before, gradient, rate, view, weights)
        intended = rate * _squared(gradient)
        return LessonOutcome(True, change, _kl(view.now, new), day_kl=self.day_kl(), intended_nats=intended)

    def _viewed(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> _View:
        """Return the view of these answers from before the lesson. Compute it unless it has been prepared."""
        wanted = [*prompt], [[*answer] for answer in answers]
        if self._view is None or (self._view.prompt, self._view.answers) != wanted:
            packed = self._packed([(prompt, answers)])
            with torch.no_grad(), lora.disabled(self.model):
                champion, lower = self._pass(packed)
            now, _ = self._pass(packed, lower)
            detached = [each.detach() for each in now]
            self._view = _View(*wanted, packed, lower, detached, _tokens(champion, answers), _tokens(now, answers))
        return self._view

    def _packed(self, asked: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]) -> Pack:
        """Return prompts with their answers as a pack, so that each prompt is computed only once."""
        return pack(answer_groups(asked), self.device)

    def _credited(self, view: _View, credit: Credit) -> tuple[Sequence[Tensor], float, Adapter]:
        """Return the credit's weights and share, and the gradient of Σ weight × log-probability."""
        self._view = None  # its graph can be used only once
        weights, share = credit([each.detach() for each in view.logprobs], view.champion)
        pairs = zip(weights, view.logprobs, strict=True)
        objective = torch.stack([(weight.to(logprobs) * logprobs).sum() for weight, logprobs in pairs]).sum()
        gradients = torch.autograd.grad(objective, [*self.adapter.values()])
        return weights, share, dict(zip(self.adapter, gradients, strict=True))

    @torch.no_grad()
    def _try(
        self, before: Adapter, gradient: Adapter, length: float, view: _View, weights: Sequence[Tensor]
    ) -> tuple[float, Distributions]:
        """Set the adapter to `before` + length × gradient. Return the measured change and the new distributions."""
        for name, parameter in self.adapter.items():
            parameter.copy_(before[name] + length * gradient[name])
        new, _ = self._pass(view.packed, view.lower)
        pairs = zip(_tokens(new, view.answers), _tokens(view.now, view.answers), strict=True)
        return float(sum((w.to(a) * (a - b)).sum() for w, (a, b) in zip(weights, pairs, strict=True))), new


def _tokens(distributions: Distributions, answers: Sequence[Sequence[int]]) -> list[Tensor]:
    """Return the log-probabilities of the answers' tokens."""
    return [
        distribution.gather(1, torch.tensor([*answer], device=distribution.device)[:, None]).squeeze(1)
        for distribution, answer in zip(distributions, answers, strict=True)
    ]


def _kl(old: Distributions, new: Distributions) -> float:
    """Return the mean over all tokens of KL(old ‖ new), in nats."""
    pairs = [(a.exp() * (a - b)).sum(dim=-1) for a, b in zip(old, new, strict=True)]
    return float(torch.cat(pairs).mean())


def _squared(gradient: Adapter) -> float:
    return float(sum(part.square().sum() for part in gradient.values()))
