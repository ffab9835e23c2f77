"""Packed groups: splitting, and log-probabilities and gradients as the plain model's."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.hf.loading import load_model
from models.packing.packing import Group, pack, split
from models.packing.prefixes import shared_prefix_lengths
from models.packing.self_check import choose_packing, packed_logprobs, plain_logprobs
from tests.models.support.tiny import plain_logprobs as logprobs_of
from tests.models.support.tiny import plain_model, random_tokens
from tests.models.support.tiny import random_group as group

CPU = torch.device("cpu")
BEGUN = random_tokens(30, seed=1)


def begun(group: Group, tokens: int) -> Group:
    """The group with so many tokens before its prompt, that others may share."""
    return replace(group, prompt=[*BEGUN[:tokens], *group.prompt])


GROUPS = [group(5, [4, 1, 7], 0), group(1, [1, 1], 3), group(9, [2], 5), group(3, [6, 6, 1, 3, 5], 6)]
GROUPS += [begun(group(4, [5, 2], 11), 9), begun(group(2, [3], 13), 9), begun(group(6, [1, 4], 14), 30)]
GROUPS += [begun(group(6, [1], 14), 30)]
GROUPS[-1] = replace(GROUPS[-1], rows=[16])


def logprobs_by_row(model: Any, groups: Sequence[Group], budget: int) -> dict[int, Tensor]:
    found: dict[int, Tensor] = {}
    for batch in split(groups, budget):
        packed = pack(batch, CPU)
        flat, _ = packed_logprobs(model, packed)
        found |= dict(zip(packed.rows, flat.split(packed.lengths), strict=True))
    return found


def packing_model(folder: Path) -> Any:
    """A model as the trainer has it: packed, because that was seen to be the same."""
    model = load_model(folder, torch.float32, CPU)
    assert choose_packing(model) is packed_logprobs
    return model


def gradients(model: Any, logprobs: dict[int, Tensor]) -> dict[str, Tensor]:
    """Of a sum in which every token of every row has its own weight."""
    model.zero_grad()
    chance = torch.Generator().manual_seed(3)
    total = sum((row * torch.randn(len(row), generator=chance)).sum() for _, row in sorted(logprobs.items()))
    total.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


# --- against the plain model


@pytest.mark.parametrize("budget", [1, 12, 1000], ids=["a completion at a time", "cut groups", "all at once"])
def test_as_the_plain_model_one_sequence_at_a_time(exact_folder: Path, budget: int) -> None:
    ours, plain = packing_model(exact_folder), plain_model(exact_folder)
    found = logprobs_by_row(ours, GROUPS, budget)
    expected = {
        row: logprobs_of(plain, group.prompt, completion)
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


SHAPES = st.lists(
    st.tuples(st.sampled_from([0, 5, 9, 30]), st.integers(1, 30), st.lists(st.integers(1, 30), min_size=1, max_size=6)),
    min_size=0,
    max_size=6,
)


def groups_of(shapes: list[Any]) -> list[Group]:
    groups, row = [], 0
    for shared, prompt, lengths in shapes:
        groups.append(begun(group(prompt, lengths, row), shared))
        row += len(lengths)
    return groups


@given(SHAPES.filter(bool))
@settings(max_examples=10)
def test_any_groups_and_any_budget(exact_folder: Path, shapes: list[Any]) -> None:
    groups = groups_of(shapes)
    ours, plain = packing_model(exact_folder), plain_model(exact_folder)
    with torch.no_grad():
        for budget in (7, 500):
            found = logprobs_by_row(ours, groups, budget)
            for each in groups:
                for row, completion in zip(each.rows, each.completions, strict=True):
                    expected = logprobs_of(plain, each.prompt, completion)
                    torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


# --- the layout


@given(SHAPES, st.integers(1, 120))
def test_splitting_loses_nothing_and_keeps_the_budget(shapes: list[Any], budget: int) -> None:
    groups = groups_of(shapes)
    batches = split(groups, budget)
    pieces = [piece for batch in batches for piece in batch]
    by_row = {r: (g.prompt, c) for g in groups for r, c in zip(g.rows, g.completions, strict=True)}
    assert sorted(row for piece in pieces for row in piece.rows) == sorted(by_row)
    for piece in pieces:
        for r, completion in zip(piece.rows, piece.completions, strict=True):
            assert (piece.prompt, completion) == by_row[r]
    for batch in batches:
        tokens = pack(batch, CPU).input_ids.shape[1]
        assert tokens == sum(p.tokens - p.shared for p in batch) + sum(map(len, {p.beginning for p in batch}))
        assert tokens <= budget or (len(batch) == 1 and len(batch[0].completions) == 1)


@pytest.mark.parametrize(
    ("prompts", "shared"),
    [
        ([], []),
        ([begun(group(3, [1], n), 9).prompt for n in range(4)], [9] * 4),
        ([begun(group(3, [1], n), 7).prompt for n in range(4)], [0] * 4),  # too few to be worth it
        ([begun(group(3, [1], n), size).prompt for n, size in enumerate([9, 30, 0, 30, 9])], [0, 30, 0, 30, 0]),
        ([begun(group(3, [1], n), size).prompt for n, size in enumerate([9, 30, 9, 0, 30, 9])], [9, 9, 9, 0, 9, 9]),
        # a few long ones are better off with the many
        ([begun(group(3, [1], n), size).prompt for n, size in enumerate([9, 12, 9, 9, 12, 9])], [9] * 6),
        ([BEGUN, BEGUN, BEGUN[:9]], [29, 29, 0]),  # never a whole prompt
        ([BEGUN[:1], BEGUN[:1]], [0, 0]),
    ],
)
def test_prompts_share_what_leaves_the_fewest_tokens(prompts: Any, shared: list[int]) -> None:
    assert shared_prefix_lengths(prompts) == shared


@pytest.mark.parametrize(
    ("groups", "budget", "rows"),
    [
        ([group(4, [5, 5, 5])], 12, [[[0, 1]], [[2]]]),
        ([group(4, [5, 5, 5])], 16, [[[0, 1, 2]]]),
        ([group(4, [5, 5], 0), group(4, [5, 5], 2)], 24, [[[0, 1], [2, 3]]]),
        ([group(4, [5, 5], 0), group(4, [5, 5], 2)], 23, [[[0, 1]], [[2, 3]]]),
        ([begun(group(4, [5, 5], 0), 9), begun(group(4, [5, 5], 2), 9)], 33, [[[0, 1], [2, 3]]]),
        ([begun(group(4, [5, 5], 0), 9), begun(group(4, [5, 5], 2), 9)], 32, [[[0, 1]], [[2, 3]]]),
        # of like length: the attention pads a microbatch's completions to its longest
        (
            [group(2, [9, 1], 0), group(2, [3, 3], 2), group(2, [9, 2], 4), group(2, [2], 6)],
            22,
            [[[6], [2, 3], [0, 1]], [[4, 5]]],
        ),
    ],
)
def test_groups_are_cut_only_where_they_must_be(groups: list[Group], budget: int, rows: list[Any]) -> None:
    assert [[list(piece.rows) for piece in batch] for batch in split(groups, budget)] == rows


# --- episodes of several turns


@pytest.mark.parametrize("logprobs", [packed_logprobs, plain_logprobs])
@pytest.mark.parametrize("budget", [1, 12, 1000])
def test_masks_leave_the_tokens_that_are_predicted(exact_folder: Path, logprobs: Any, budget: int) -> None:
    """The others are read all the same: what follows depends on them."""
    packing, chance, masked = packing_model(exact_folder), torch.Generator().manual_seed(5), []
    model = packing if logprobs is packed_logprobs else plain_model(exact_folder)
    for each in GROUPS:
        masks = [(torch.rand(len(completion), generator=chance) < 0.5).tolist() for completion in each.completions]
        masked.append(replace(each, masks=[[*mask[:-1], True] for mask in masks]))
    whole = logprobs_by_row(packing, GROUPS, 1000)
    for batch in split(masked, budget):
        packed = pack(batch, CPU)
        flat, entropies = logprobs(model, packed)
        assert len(entropies) == len(flat) == sum(packed.lengths)
        masks = [mask for each in batch for mask in each.masks or ()]
        for row, mask, found in zip(packed.rows, masks, flat.split(packed.lengths), strict=True):
            torch.testing.assert_close(found, whole[row][torch.tensor(mask)], atol=1e-5, rtol=0.0)
