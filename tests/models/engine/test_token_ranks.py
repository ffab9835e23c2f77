"""What vLLM returns without ranks: the same log-probabilities of the same tokens."""

import pytest
import torch

from models.engine import token_ranks


def test_nothing_is_counted_and_nothing_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.v1.sample import sampler  # seconds, which each process that collects tests would need

    def compiled(*_: object) -> None:
        raise AssertionError("a kernel would be compiled")

    monkeypatch.setattr(sampler, "batched_count_greater_than", compiled)  # fails where vLLM has moved it
    token_ranks.disable()
    logprobs = torch.randn(3, 7, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    chosen = torch.tensor([4, 0, 6])
    found = sampler.Sampler.gather_logprobs(logprobs, 0, chosen)
    assert found.logprob_token_ids[:, 0].tolist() == chosen.tolist()
    assert found.logprobs[:, 0].tolist() == logprobs[torch.arange(3), chosen].tolist()
    assert found.selected_token_ranks.tolist() == [0, 0, 0]
