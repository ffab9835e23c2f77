"""Rows of prompts and answers against a pass for each answer, with models that can compute rows and one that cannot."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from conf.schema import LoraConfig
from models.hf.lora import attach, save_adapter
from models.lessons.rows import Row, RowModel
from tests.models.support import tiny
from tests.models.support.tiny import plain_logprobs, random_tokens

FROZEN = 3
SHAPE = tiny.SHAPE | {"num_hidden_layers": 6, "head_dim": 12}
GROUPS = [
    (random_tokens(5, 1), [random_tokens(length, 10 + length) for length in (4, 1, 6)]),
    (random_tokens(3, 2), [random_tokens(7, 20)]),
]


def model(kind: str) -> Any:
    torch.manual_seed(1)
    match kind:
        case "llama":
            made: Any = LlamaForCausalLM(LlamaConfig(**SHAPE, bos_token_id=0))
        case "qwen3":
            made = Qwen3ForCausalLM(Qwen3Config(**SHAPE, bos_token_id=0))
        case _:
            made = Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, sliding_window=4))
    attach(made.eval(), LoraConfig(rank=2, alpha=4), range(FROZEN, 6))
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if ".lora_B." in name:
                parameter.normal_(0, 0.2)
    return made


@pytest.mark.parametrize(("kind", "in_rows"), [("llama", True), ("qwen3", True), ("sliding windows", False)])
@torch.no_grad()
def test_each_answer_gets_the_log_probabilities_of_a_pass_of_its_own(kind: str, in_rows: bool) -> None:
    plain = model(kind)
    rows, row = RowModel(plain, FROZEN), Row(GROUPS, plain.device)
    whole, lower = rows(row)
    assert (lower is not None) == in_rows
    alone = rows.lower(row)
    assert torch.equal(alone, lower) if alone is not None and lower is not None else alone is lower
    for found in (whole, rows(row, lower)[0]):
        for distributions, (prompt, answer) in zip(found, row.pairs, strict=True):
            logprobs = distributions.gather(1, torch.tensor(answer)[:, None]).squeeze(1)
            assert torch.allclose(logprobs, plain_logprobs(plain, prompt, answer), atol=1e-4)


def test_a_failed_pass_leaves_the_model_as_it_was() -> None:
    plain = model("llama")
    rows, row = RowModel(plain, FROZEN), Row(GROUPS, plain.device)
    with torch.no_grad():
        expected, _ = rows(row)
        with pytest.raises(RuntimeError):
            rows(row, torch.zeros(1, 2, 32))  # of another row
        assert all(torch.equal(one, other) for one, other in zip(rows(row)[0], expected, strict=True))


def test_adapters_of_some_layers_are_saved_and_loaded(tmp_path: Path) -> None:
    adapted = model("llama")
    assert {name.split(".")[2] for name, p in adapted.named_parameters() if p.requires_grad} == {"3", "4", "5"}
    save_adapter(adapted, tmp_path)
    torch.manual_seed(1)
    loaded = PeftModel.from_pretrained(LlamaForCausalLM(LlamaConfig(**SHAPE, bos_token_id=0)).eval(), tmp_path)
    prompt, (answer, *_) = GROUPS[0]
    with torch.no_grad():
        assert torch.allclose(
            plain_logprobs(loaded, prompt, answer), plain_logprobs(adapted, prompt, answer), atol=1e-5
        )
