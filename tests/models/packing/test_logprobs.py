"""Chunked log-probabilities and entropies, against a whole log-softmax."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical

from models.packing import logprobs
from models.packing.logprobs import token_logprobs


def example(count: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    chance = torch.Generator().manual_seed(count)
    hidden = torch.randn(count, 8, generator=chance)
    head = torch.randn(31, 8, generator=chance)
    targets = torch.randint(31, (count,), generator=chance)
    return hidden.to(dtype).requires_grad_(), head.to(dtype).requires_grad_(), targets


def whole(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float = 1.0) -> Tensor:
    return ((hidden @ head.T).float() / temperature).log_softmax(dim=1).gather(1, targets[:, None]).squeeze(1)


@pytest.mark.parametrize(("count", "temperature"), [(1, 1.0), (4, 1.0), (5, 1.0), (13, 1.0), (13, 1.6)])
def test_chunks_do_not_show(count: int, temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("ROWS", 4), ("COLUMNS", 10), ("BLOCK", {"cpu": 62})):
        monkeypatch.setattr(logprobs, name, size)
    hidden, head, targets = example(count)
    weights = torch.randn(count, generator=torch.Generator().manual_seed(9))
    found, entropies = token_logprobs(hidden, head, targets, temperature)
    assert not entropies.requires_grad
    expected = whole(hidden, head, targets, temperature)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(
        entropies, Categorical(logits=hidden @ head.T / temperature).entropy(), atol=1e-5, rtol=1e-5
    )
    gradients = torch.autograd.grad((found * weights).sum(), (hidden, head))
    for got, want in zip(gradients, torch.autograd.grad((expected * weights).sum(), (hidden, head)), strict=True):
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    frozen, _ = token_logprobs(hidden, head.detach(), targets, temperature)
    assert torch.autograd.grad((frozen * weights).sum(), hidden)[0].equal(gradients[0])


def test_certain_and_impossible_tokens() -> None:
    """Logits of ±1e4: the certain token has 0, the other −2e4, and the entropy is 0; all gradients are finite."""
    hidden = torch.tensor([[1e2], [1e2]], requires_grad=True)
    head = torch.tensor([[1e2], [-1e2]], requires_grad=True)
    found, entropies = token_logprobs(hidden, head, torch.tensor([0, 1]))
    assert found.tolist() == [0.0, -2e4]
    assert entropies.tolist() == [0.0, 0.0]
    gradients = torch.autograd.grad(found.sum(), (hidden, head))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_bf16_logits_are_normalised_in_fp32() -> None:
    hidden, head, targets = example(40, torch.bfloat16)
    found, _ = token_logprobs(hidden, head, targets)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, whole(hidden, head, targets), atol=1e-6, rtol=1e-6)
    gradients = torch.autograd.grad(found.sum(), (hidden, head))
    exact = torch.autograd.grad(whole(hidden.float(), head.float(), targets).sum(), (hidden, head))
    for got, want in zip(gradients, exact, strict=True):
        assert got.dtype == torch.bfloat16
        torch.testing.assert_close(got.float(), want.float(), atol=0.05, rtol=0.05)
