"""Attention over packed groups, against one masked matrix: values, gradients, windows, and what it is not."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from models.packing.attention import _fused, packed_attention
from models.packing.packing import Group, pack
from tests.models.support.tiny import random_group as group

CPU = torch.device("cpu")
PAIR = [group(3, [4, 2], 0), group(2, [3], 2)]
# for each token of the pack, those before it: the prompts 0–2 and 3–4, the completions' inputs 5–7, 8 and 9–10
PAIR_BEFORE = [[], [0], [0, 1], [], [3], [0, 1, 2], [0, 1, 2, 5], [0, 1, 2, 5, 6], [0, 1, 2], [3, 4], [3, 4, 9]]
FOREST = [
    Group([2, 3, 4], [[5, 6, 7], [8]], [0, 1], shared=2),
    Group([2, 3, 5, 6], [[5, 6]], [2], shared=2),
    Group([7], [[5, 6, 7]], [3]),
    Group([2, 3, 7], [[9, 8]], [4], shared=2),
]
# the beginning 0–1, the rests 2, 3–4, 5 and 6, the inputs of the completions 7–8, 9, 10–11 and 12
FOREST_BEFORE = [[], [0], [0, 1], [0, 1], [0, 1, 3], [], [0, 1], [0, 1, 2], [0, 1, 2, 7], [0, 1, 3, 4], [5], [5, 10]]
FOREST_BEFORE += [[0, 1, 6]]
PACKS = [(PAIR, PAIR_BEFORE), (FOREST, FOREST_BEFORE)]


def attention_inputs(groups: Sequence[Group]) -> tuple[Any, list[Tensor]]:
    packed = pack(groups, CPU)
    tokens, chance = packed.input_ids.shape[1], torch.Generator().manual_seed(0)
    heads = (4, 2, 2)
    found = [torch.randn(1, h, tokens, 6, generator=chance, dtype=torch.float64).requires_grad_() for h in heads]
    return packed.layout, found


def masked_attention(inputs: Sequence[Tensor], before: Any, scaling: float | None, window: int | None) -> Tensor:
    """As one masked matrix; heads 0 and 1 read key head 0, heads 2 and 3 key head 1."""
    query, key, value = inputs
    mask = torch.zeros(len(before), len(before), dtype=torch.bool)
    for place, earlier in enumerate(before):
        mask[place, [*earlier, place][-(window or len(before)) :]] = True
    scores = query @ key.repeat_interleave(2, dim=1).transpose(2, 3) * (6**-0.5 if scaling is None else scaling)
    shares = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (shares @ value.repeat_interleave(2, dim=1)).transpose(1, 2)


@pytest.mark.parametrize(("block", "kept"), [(1, 0), (1, 512), (2, 0), (2, 512), (128, 2), (128, 512)])
@pytest.mark.parametrize(("scaling", "window"), [(None, None), (0.3, None), (None, 1), (None, 2), (None, 4), (None, 6)])
@pytest.mark.parametrize(("groups", "before"), PACKS, ids=["a pair", "a forest"])
def test_attention_and_its_gradients_as_a_masked_matrix(
    monkeypatch: pytest.MonkeyPatch,
    groups: Any,
    before: Any,
    scaling: float | None,
    window: int | None,
    block: int,
    kept: int,
) -> None:
    monkeypatch.setattr("models.packing.attention.BLOCK", block)
    monkeypatch.setattr("models.packing.attention.KEPT", kept)
    layout, inputs = attention_inputs(groups)
    expected = masked_attention(inputs, before, scaling, window)
    above = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = torch.autograd.grad(expected, inputs, above)
    module = torch.nn.Module()
    options: Any = {"layout": layout, "sliding_window": window}
    found, _ = packed_attention(module, *inputs, None, scaling, **options)
    torch.testing.assert_close(found, expected)
    for got, want in zip(torch.autograd.grad(found, inputs, above), gradients, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("window", [None, 2, 4])
@pytest.mark.parametrize(("groups", "before"), PACKS, ids=["a pair", "a forest"])
def test_the_fused_kernels_of_a_gpu_see_the_same(device: str, window: int | None, groups: Any, before: Any) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    inputs = attention_inputs(groups)[1]
    layout = pack(groups, torch.device(device)).layout
    expected = masked_attention(inputs, before, None, window)
    there = [x.detach().to(device).requires_grad_() for x in inputs]
    found = _fused(*(x[0].transpose(0, 1) for x in there), layout, 6**-0.5, window).unsqueeze(0)
    torch.testing.assert_close(found.cpu(), expected)
    above = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = torch.autograd.grad(found, there, above.to(device))
    for got, want in zip(gradients, torch.autograd.grad(expected, inputs, above), strict=True):
        torch.testing.assert_close(got.cpu(), want)


@pytest.mark.parametrize("kind", [{"softcap": 50.0}, {"s_aux": torch.zeros(4)}])
def test_attention_that_it_is_not(kind: dict[str, Any]) -> None:
    layout, inputs = attention_inputs(PAIR)
    with pytest.raises(ValueError, match="softcapped, or has sinks"):
        packed_attention(torch.nn.Module(), *inputs, None, layout=layout, **kind)
