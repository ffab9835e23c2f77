"""Packs of prompts and answers against a pass for each answer, with models that can be packed and one that cannot."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from conf.schema import LoraConfig
from models.hf.lora import attach, save_adapter
from models.lessons.partly_frozen import PartlyFrozen
from models.packing.packing import answer_groups, pack
from tests.models.support import tiny
from tests.models.support.tiny import plain_logprobs, random_tokens

CPU = torch.device("cpu")
FROZEN = 3
SHAPE = tiny.SHAPE | {"num_hidden_layers": 6, "head_dim": 12}
GROUPS = [
    (random_tokens(5, 1), [random_tokens(length, 10 + length) for length in (4, 1, 6)]),
    (random_tokens(3, 2), [random_tokens(7, 20)]),
]
PAIRS = [(prompt, answer) for prompt, answers in GROUPS for answer in answers]


def model(kind: str) -> tuple[Any, PartlyFrozen]:
    torch.manual_seed(1)
    match kind:
        case "llama":
            made: Any = LlamaForCausalLM(LlamaConfig(**SHAPE, bos_token_id=0))
        case "qwen3":
            made = Qwen3ForCausalLM(Qwen3Config(**SHAPE, bos_token_id=0))
        case "sliding windows":
            made = Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, sliding_window=4))
        case _:
            made = GraniteForCausalLM(GraniteConfig(**tiny.SHAPE | {"num_hidden_layers": 6}, logits_scaling=8.0))
    passes = PartlyFrozen(made.eval(), FROZEN)
    attach(made, LoraConfig(rank=2, alpha=4), range(FROZEN, 6))
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if ".lora_B." in name:
                parameter.normal_(0, 0.2)
    return made, passes


@pytest.mark.parametrize(
    ("kind", "packs"), [("llama", True), ("qwen3", True), ("sliding windows", True), ("granite", False)]
)
@torch.no_grad()
def test_each_answer_gets_the_log_probabilities_of_a_pass_of_its_own(kind: str, packs: bool) -> None:
    adapted, passes = model(kind)
    packed = pack(answer_groups(GROUPS), CPU)
    whole, lower = passes(packed)
    assert (lower is not None) == packs
    alone = passes.lower(packed)
    assert torch.equal(alone, lower) if alone is not None and lower is not None else alone is lower
    found = [whole, passes(packed, lower)[0]]
    for distributions in found:
        for each, (prompt, answer) in zip(distributions, PAIRS, strict=True):
            logprobs = each.gather(1, torch.tensor(answer)[:, None]).squeeze(1)
            assert torch.allclose(logprobs, plain_logprobs(adapted, prompt, answer), atol=1e-4)


def test_a_failed_pass_leaves_the_model_as_it_was() -> None:
    _, passes = model("llama")
    packed = pack(answer_groups(GROUPS), CPU)
    with torch.no_grad():
        expected, _ = passes(packed)
        with pytest.raises((RuntimeError, IndexError)):
            passes(packed, torch.zeros(1, 2, 32))  # of another pack
        assert all(torch.equal(one, other) for one, other in zip(passes(packed)[0], expected, strict=True))


def test_layers_that_cannot_be_skipped_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those that a model's own code calls with named arguments only."""
    monkeypatch.setattr("models.lessons.partly_frozen._skipped", lambda *, hidden_states: hidden_states)
    _, passes = model("llama")
    packed = pack(answer_groups(GROUPS), CPU)
    with torch.no_grad():
        whole, lower = passes(packed)
    assert [len(each) for each in whole] == [len(answer) for _, answer in PAIRS]
    assert lower is None
    assert passes.lower(packed) is None


def test_adapters_of_some_layers_are_saved_and_loaded(tmp_path: Path) -> None:
    adapted, _ = model("llama")
    assert {name.split(".")[2] for name, p in adapted.named_parameters() if p.requires_grad} == {"3", "4", "5"}
    save_adapter(adapted, tmp_path)
    torch.manual_seed(1)
    loaded = PeftModel.from_pretrained(LlamaForCausalLM(LlamaConfig(**SHAPE, bos_token_id=0)).eval(), tmp_path)
    prompt, (answer, *_) = GROUPS[0]
    with torch.no_grad():
        assert torch.allclose(
            plain_logprobs(loaded, prompt, answer), plain_logprobs(adapted, prompt, answer), atol=1e-5
        )
