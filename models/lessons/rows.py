"""Several prompts and answers in one forward pass, which computes each prompt and the frozen lower layers only once."""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module, ModuleList
from transformers import PreTrainedModel

DIFFERENCE = 1e-3  # nats; the most by which two computations of a log-probability may differ
log = logging.getLogger(__name__)

Tokens = Sequence[int]
Hidden = Float[Tensor, "1 tokens width"]
Distributions = list[Float[Tensor, "tokens vocabulary"]]  # log-probabilities, one tensor per answer


class Row:
    """Prompts with their answers, side by side in one row of tokens, so that each prompt is computed only once.

    `ids`, `positions` [1, T]; a prompt's answers all begin at the position after it. `mask` [1, 1, T, T]: 0 where a
    token may attend to another, the most negative number elsewhere. `kept`: the indices at which the answers' tokens
    are predicted, answer by answer. `pairs`: each answer with its prompt.
    """

    def __init__(self, groups: Sequence[tuple[Tokens, Sequence[Tokens]]], device: torch.device) -> None:
        ids, positions, kept = list[int](), list[int](), list[int]()
        parts = list[tuple[int, int]]()  # each token's group, and its answer from 1; 0 for the prompt
        for group, (prompt, answers) in enumerate(groups):
            end = len(ids) + len(prompt)
            for part, tokens in enumerate([prompt, *(answer[:-1] for answer in answers)]):
                if part:
                    kept += [end - 1, *range(len(ids), len(ids) + len(tokens))]
                first = len(prompt) if part else 0
                positions += range(first, first + len(tokens))
                parts += [(group, part)] * len(tokens)
                ids += tokens
        group, part = torch.tensor(parts).T
        seen = (group[:, None] == group) & ((part == 0) | (part[:, None] == part))
        mask = torch.full(seen.shape, torch.finfo(torch.float32).min).masked_fill_(seen.tril(), 0.0)
        self.pairs = [(prompt, answer) for prompt, answers in groups for answer in answers]
        self.ids, self.positions = torch.tensor([ids], device=device), torch.tensor([positions], device=device)
        self.mask, self.kept = mask[None, None].to(device), torch.tensor(kept, device=device)


class RowModel:
    """A model whose first layers are frozen: their output for a row can be kept, and later calls skip them."""

    def __init__(self, model: PreTrainedModel, frozen: int) -> None:
        """`frozen`: how many layers, from the first, are never changed."""
        count = model.config.get_text_config().num_hidden_layers
        layers = next(m for m in model.modules() if isinstance(m, ModuleList) and len(m) == count)
        self.model, self._frozen, self._trained = model, [*layers[:frozen]], layers[frozen]
        self._in_rows = True
        self._in_rows = self._agrees()

    def __call__(self, row: Row, lower: Hidden | None = None) -> tuple[Distributions, Hidden | None]:
        """Return the whole vocabulary's log-probabilities at each answer's tokens, and the frozen layers' output.

        If that output is given (`lower`), these layers are skipped. It is None for models that cannot compute rows.
        """
        if not self._in_rows:
            return [self._alone(prompt, answer) for prompt, answer in row.pairs], None
        entering = list[Tensor]()

        def enter(_: Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            entering.append(arguments[0] if lower is None else lower)
            return *entering, *arguments[1:]

        hook = self._trained.register_forward_pre_hook(enter)
        try:
            for layer in self._frozen if lower is not None else ():
                layer.forward = _skipped
            inputs = {"input_ids": row.ids, "position_ids": row.positions, "attention_mask": row.mask}
            logits = self.model(**inputs, use_cache=False, logits_to_keep=row.kept).logits[0]
        finally:
            hook.remove()
            for layer in self._frozen:
                layer.__dict__.pop("forward", None)
        whole = logits.float().log_softmax(dim=-1)
        return [*whole.split([len(answer) for _, answer in row.pairs])], entering[0]

    @torch.no_grad()
    def lower(self, row: Row) -> Hidden | None:
        """Return the frozen layers' output alone; None for models that cannot compute rows."""
        if not self._in_rows:
            return None
        entering = list[Tensor]()

        def stop(_: Module, arguments: tuple[Any, ...]) -> None:
            entering.append(arguments[0])
            raise _Enough

        hook = self._trained.register_forward_pre_hook(stop)
        try:
            self.model(row.ids, attention_mask=row.mask, position_ids=row.positions, use_cache=False)
        except _Enough:
            return entering[0]
        finally:
            hook.remove()

    def _alone(self, prompt: Tokens, answer: Tokens) -> Float[Tensor, "tokens vocabulary"]:
        """Return the whole vocabulary's log-probabilities at an answer's tokens, by a forward pass of its own."""
        ids = torch.tensor([[*prompt, *answer][:-1]], device=self.model.device)
        return self.model(input_ids=ids, use_cache=False, logits_to_keep=len(answer)).logits[0].float().log_softmax(-1)

    @torch.no_grad()
    def _agrees(self) -> bool:
        """Return whether a row, also with the frozen layers skipped, gives what a pass for each answer gives.

        It does not where layers see no mask (recurrent ones) or only a part of the text (sliding windows).
        """
        config: Any = self.model.config.get_text_config()
        others = {*(getattr(config, "layer_types", None) or ())} - {"full_attention"}
        try:
            if getattr(config, "sliding_window", None) or others:
                raise ValueError("not all layers attend to the whole text")
            row = Row([(range(9, 13), [range(5), range(3, 5)]), (range(3), [range(6, 9)])], self.model.device)
            whole, lower = self(row)
            for found in (whole, self(row, lower)[0]):
                for one, pair in zip(found, row.pairs, strict=True):
                    torch.testing.assert_close(one, self._alone(*pair), rtol=0, atol=DIFFERENCE)
        except Exception as error:  # a model's own code may raise anything
            log.warning("%s computes one answer at a time, which is slower: %s", type(self.model).__name__, error)
            return False
        return True


class _Enough(Exception):
    """The layers that were wanted are computed."""


def _skipped(hidden: Hidden, *_: Any, **__: Any) -> Hidden:
    return hidden
