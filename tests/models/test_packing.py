"""Packed groups: the layout by hand, and log-probabilities and gradients as the plain model computes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.logprobs import token_logprobs
from models.packing import Group, hidden_states, pack, packed_attention, split
from models.policy import load_model
from tests.models.tiny import plain_logprobs, plain_model, random_tokens, write_tiny

CPU = torch.device("cpu")


def group(prompt: int, lengths: Sequence[int], first_row: int = 0) -> Group:
    """A group of random tokens: a prompt of so many, completions of these lengths."""
    completions = [random_tokens(length, 100 * first_row + place) for place, length in enumerate(lengths)]
    return Group(random_tokens(prompt, 7 + first_row), completions, list(range(first_row, first_row + len(lengths))))


GROUPS = [group(5, [4, 1, 7], 0), group(1, [1, 1], 3), group(9, [2], 5), group(3, [6, 6, 1, 3, 5], 6)]


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp(request.param), request.param, dtype=torch.float32)


def packed_logprobs(model: Any, groups: Sequence[Group], budget: int) -> dict[int, Tensor]:
    found: dict[int, Tensor] = {}
    for batch in split(groups, budget):
        packed = pack(batch, torch.float32, CPU)
        flat, _ = token_logprobs(hidden_states(model, packed), model.get_output_embeddings().weight, packed.targets)
        found |= dict(zip(packed.rows, flat.split(packed.lengths), strict=True))
    return found


def gradients(model: Any, logprobs: dict[int, Tensor]) -> dict[str, Tensor]:
    """Of a sum in which every token of every row has its own weight."""
    model.zero_grad()
    chance = torch.Generator().manual_seed(3)
    total = sum((row * torch.randn(len(row), generator=chance)).sum() for _, row in sorted(logprobs.items()))
    total.backward()  # pyright: ignore
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


# --- against the plain model


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("budget", [1, 12, 1000], ids=["a completion at a time", "cut groups", "all at once"])
def test_as_the_plain_model_one_sequence_at_a_time(folder: Path, attention: Any, budget: int) -> None:
    ours, plain = load_model(folder, torch.float32, CPU), plain_model(folder, attention=attention)
    found = packed_logprobs(ours, GROUPS, budget)
    expected = {
        row: plain_logprobs(plain, group.prompt, completion)
        for group in GROUPS
        for row, completion in zip(group.rows, group.completions, strict=True)
    }
    assert found.keys() == expected.keys()
    for row, logprobs in expected.items():
        torch.testing.assert_close(found[row], logprobs, atol=1e-5, rtol=1e-5)
    got, want = gradients(ours, found), gradients(plain, expected)
    assert got.keys() == want.keys()
    for name, gradient in want.items():
        assert gradient.abs().max() > 1e-3, name
        torch.testing.assert_close(got[name], gradient, atol=2e-5, rtol=1e-4, msg=name)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.lists(st.integers(1, 6), min_size=1, max_size=4)), min_size=1, max_size=3)
)
@settings(deadline=None, max_examples=15)
def test_any_groups_and_any_budget(tmp_path_factory: pytest.TempPathFactory, shapes: list[Any]) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    if not folder.exists():
        write_tiny(folder, dtype=torch.float32)
    groups, row = [], 0
    for prompt, lengths in shapes:
        groups.append(group(prompt, lengths, row))
        row += len(lengths)
    ours, plain = load_model(folder, torch.float32, CPU), plain_model(folder)
    with torch.no_grad():
        for budget in (7, 500):
            found = packed_logprobs(ours, groups, budget)
            for each in groups:
                for row, completion in zip(each.rows, each.completions, strict=True):
                    expected = plain_logprobs(plain, each.prompt, completion)
                    torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


def test_nothing_leaks_between_completions_and_groups(folder: Path) -> None:
    model = load_model(folder, torch.float32, CPU)
    first, second = group(4, [5, 6], 0), group(4, [5], 2)
    before = packed_logprobs(model, [first, second], 1000)
    other = Group(first.prompt, [first.completions[0], random_tokens(6, 99)], first.rows)
    after = packed_logprobs(model, [other, Group(random_tokens(4, 98), second.completions, second.rows)], 1000)
    torch.testing.assert_close(after[0], before[0], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(after[1], before[1], atol=1e-3)
    assert not torch.allclose(after[2], before[2], atol=1e-3)  # its prompt changed


# --- the layout


def test_the_layout_by_hand() -> None:
    groups = [Group([10, 11], [[20, 21, 22], [30]], [4, 2]), Group([12], [[40, 41]], [0])]
    packed = pack(groups, torch.float32, CPU)
    assert packed.input_ids.tolist() == [[10, 11, 20, 21, 12, 40]]
    assert packed.position_ids.tolist() == [[0, 1, 2, 3, 0, 1]]
    assert packed.predictors.tolist() == [1, 2, 3, 1, 4, 5]
    assert packed.targets.tolist() == [20, 21, 22, 30, 40, 41]
    assert (packed.lengths, packed.rows) == ((3, 1, 2), (4, 2, 0))
    first, second = packed.groups
    assert (first.start, first.prompt, second.start, second.prompt) == (0, 2, 4, 1)
    assert first.inputs.tolist() == [[2, 3], [0, 0]]
    assert first.valid.tolist() == [[True, True], [False, False]]
    hidden = float("-inf")
    assert first.bias.tolist() == [[0, 0, 0, hidden], [0, 0, 0, 0]]
    assert second.inputs.tolist() == [[5]]


SHAPES = st.lists(
    st.tuples(st.integers(1, 30), st.lists(st.integers(1, 30), min_size=1, max_size=6)), min_size=0, max_size=6
)


@given(SHAPES, st.integers(1, 120))
@settings(deadline=None)
def test_splitting_loses_nothing_and_keeps_the_budget(shapes: list[Any], budget: int) -> None:
    groups, row = [], 0
    for prompt, lengths in shapes:
        groups.append(group(prompt, lengths, row))
        row += len(lengths)
    batches = split(groups, budget)
    pieces = [piece for batch in batches for piece in batch]
    assert [row for piece in pieces for row in piece.rows] == list(range(row))
    by_row = {r: (g.prompt, c) for g in groups for r, c in zip(g.rows, g.completions, strict=True)}
    for piece in pieces:
        for r, completion in zip(piece.rows, piece.completions, strict=True):
            assert (piece.prompt, completion) == by_row[r]
    for batch in batches:
        tokens = sum(piece.tokens for piece in batch)
        assert tokens == pack(batch, torch.float32, CPU).input_ids.shape[1]
        assert tokens <= budget or (len(batch) == 1 and len(batch[0].completions) == 1)


def test_a_group_is_cut_only_where_it_must_be() -> None:
    assert [[len(piece.rows) for piece in batch] for batch in split([group(4, [5, 5, 5])], 12)] == [[2], [1]]
    assert [[len(piece.rows) for piece in batch] for batch in split([group(4, [5, 5, 5])], 16)] == [[3]]
    two = [group(4, [5, 5], 0), group(4, [5, 5], 2)]
    assert [[len(piece.rows) for piece in batch] for batch in split(two, 24)] == [[2, 2]]
    assert [[len(piece.rows) for piece in batch] for batch in split(two, 23)] == [[2], [2]]


# --- the attention by itself


PAIR = [group(3, [4, 2], 0), group(2, [3], 2)]


def attention_inputs() -> tuple[Any, Tensor, Tensor, Tensor]:
    packed = pack(PAIR, torch.float64, CPU)
    tokens, chance = packed.input_ids.shape[1], torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, tokens, 6, generator=chance, dtype=torch.float64)
    key, value = torch.randn(2, 1, 2, tokens, 6, generator=chance, dtype=torch.float64)
    return packed, query, key, value


@pytest.mark.parametrize("scaling", [None, 0.3])
def test_attention_as_a_masked_matrix(scaling: float | None) -> None:
    """Heads 0 and 1 read key head 0, heads 2 and 3 key head 1; without a scale it is one over the root of the width."""
    packed, query, key, value = attention_inputs()
    owners = [(0, {0, 1, 2})] * 3 + [(0, {0, 1, 2, 3, 4, 5})] * 3 + [(0, {0, 1, 2, 6})] + [(1, {7, 8})] * 2
    owners += [(1, {7, 8, 9, 10})] * 2
    tokens = len(owners)
    assert packed.input_ids.shape[1] == tokens
    mask = torch.tensor([[k in seen and k <= q for k in range(tokens)] for q, (_, seen) in enumerate(owners)])
    scores = query @ key.repeat_interleave(2, dim=1).transpose(2, 3) * (6**-0.5 if scaling is None else scaling)
    shares = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    expected = (shares @ value.repeat_interleave(2, dim=1)).transpose(1, 2)
    found, _ = packed_attention(torch.nn.Module(), query, key, value, None, scaling, groups=packed.groups)
    torch.testing.assert_close(found, expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_attention_on_a_gpu_as_on_the_cpu() -> None:
    packed, query, key, value = attention_inputs()
    there = pack(PAIR, torch.float64, torch.device("cuda"))
    expected, _ = packed_attention(torch.nn.Module(), query, key, value, None, groups=packed.groups)
    found, _ = packed_attention(torch.nn.Module(), query.cuda(), key.cuda(), value.cuda(), None, groups=there.groups)
    torch.testing.assert_close(found.cpu(), expected)


def test_attention_that_it_is_not() -> None:
    packed, query, key, value = attention_inputs()
    arguments: Any = (torch.nn.Module(), query, key, value, None)
    packed_attention(*arguments, groups=packed.groups, sliding_window=6)  # the longest is 3 + 3
    with pytest.raises(ValueError, match="window shorter"):
        packed_attention(*arguments, groups=packed.groups, sliding_window=5)
    with pytest.raises(ValueError, match="softcapped"):
        packed_attention(*arguments, groups=packed.groups, softcap=50.0)
