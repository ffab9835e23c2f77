"""A model that computes its frozen lower layers only once for each pack of prompts and answers."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module, ModuleList
from transformers import PreTrainedModel

from conf.storage.log import log
from models.packing.attention import ATTENTION
from models.packing.packing import Pack, answer_groups, hidden_states, pack
from models.packing.self_check import choose_packing, packed_logprobs

DIFFERENCE = 1e-3  # nats; the most by which two computations of a log-probability may differ

Tokens = Sequence[int]
Hidden = Float[Tensor, "1 tokens width"]
Distributions = list[Float[Tensor, "tokens vocabulary"]]  # log-probabilities, one tensor per answer


class PartlyFrozen:
    """A model whose first layers are frozen: their output for a pack can be kept, and later calls skip them.

    If packing fails for the model, it computes one answer at a time. Outside of a call, the model is as it was loaded.
    """

    def __init__(self, model: PreTrainedModel, frozen: int) -> None:
        """`frozen`: how many layers, from the first, are never changed. To be made before parameters are frozen."""
        count = model.config.get_text_config().num_hidden_layers
        layers = next(m for m in model.modules() if isinstance(m, ModuleList) and len(m) == count)
        self.model, self._frozen, self._trained = model, [*layers[:frozen]], layers[frozen]
        self._attention = str(model.config._attn_implementation)
        self._packs = self._keeps = choose_packing(model) is packed_logprobs
        model.set_attn_implementation(self._attention)
        if self._packs and not self._skips():
            self._keeps = False
            log.warning(
                "%s: lessons by day are slower, because its frozen layers cannot be skipped", type(model).__name__
            )

    def __call__(self, packed: Pack, lower: Hidden | None = None) -> tuple[Distributions, Hidden | None]:
        """Return the whole vocabulary's log-probabilities at each answer's tokens, and the frozen layers' output.

        If that output is given (`lower`), these layers are skipped. It is None for models that cannot skip them.
        """
        if not self._keeps:
            return self._whole(packed), None
        entering = list[Tensor]()

        def enter(_: Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            entering.append(arguments[0] if lower is None else lower)
            return *entering, *arguments[1:]

        hook = self._trained.register_forward_pre_hook(enter)
        try:
            for layer in self._frozen if lower is not None else ():
                layer.forward = _skipped
            return self._whole(packed), entering[0]
        finally:
            hook.remove()
            for layer in self._frozen:
                layer.__dict__.pop("forward", None)

    @torch.no_grad()
    def lower(self, packed: Pack) -> Hidden | None:
        """Return the frozen layers' output alone; None for models that cannot skip them."""
        if not self._keeps:
            return None
        entering = list[Tensor]()

        def stop(_: Module, arguments: tuple[Any, ...]) -> None:
            entering.append(arguments[0])
            raise _Enough

        hook = self._trained.register_forward_pre_hook(stop)
        try:
            self._hidden_states(packed)
        except _Enough:
            return entering[0]
        finally:
            hook.remove()

    def _whole(self, packed: Pack) -> Distributions:
        """Return the whole vocabulary's log-probabilities at each answer's tokens."""
        if not self._packs:
            return [self._alone(group.prompt, each) for group in packed.groups for each in group.completions]
        head: Any = self.model.get_output_embeddings()
        return [*head(self._hidden_states(packed)).float().log_softmax(dim=-1).split(packed.lengths)]

    def _hidden_states(self, packed: Pack) -> Tensor:
        self.model.set_attn_implementation(ATTENTION)
        try:
            return hidden_states(self.model, packed)
        finally:
            self.model.set_attn_implementation(self._attention)

    def _alone(self, prompt: Tokens, answer: Tokens) -> Float[Tensor, "tokens vocabulary"]:
        """Return the whole vocabulary's log-probabilities at an answer's tokens, by a forward pass of its own."""
        ids = torch.tensor([[*prompt, *answer][:-1]], device=self.model.device)
        return self.model(input_ids=ids, use_cache=False, logits_to_keep=len(answer)).logits[0].float().log_softmax(-1)

    @torch.no_grad()
    def _skips(self) -> bool:
        """Return whether skipping the frozen layers gives what computing them gives: a model's own code may differ."""
        packed = pack(answer_groups([(range(4), [range(4, 7), range(2, 6)])]), self.model.device)
        try:
            whole, lower = self(packed)
            pairs = zip(whole, self(packed, lower)[0], strict=True)
            return all(one.allclose(other, rtol=0, atol=DIFFERENCE) for one, other in pairs)
        except Exception:  # a model's own code may raise anything
            return False


class _Enough(Exception):
    """The layers that were wanted are computed."""


def _skipped(hidden: Hidden, *_: Any, **__: Any) -> Hidden:
    return hidden
