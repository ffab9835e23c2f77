"""The starter student: unpacked, it is a plain model folder that answers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from conf.schema import StudentConfig
from models.hf import loading
from models.hf.loading import load_tokenizer, prompt_tokens, write_starter
from tests.models.support.tiny import plain_model


def test_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PACKAGE", "no_such_package_of_a_starter")
    with pytest.raises(FileNotFoundError, match="make setup"):
        write_starter(tmp_path / "starter")
    assert not (tmp_path / "starter").exists()


@pytest.mark.full
def test_it_answers(tmp_path: Path) -> None:
    write_starter(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert "quantization_config" not in config
    assert sum(file.stat().st_size for file in tmp_path.glob("*.safetensors")) < 280e6

    tokenizer: Any = load_tokenizer(tmp_path)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = prompt_tokens(tokenizer, question, StudentConfig())
    assert tokenizer.decode(prompt).endswith(
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    model: Any = plain_model(tmp_path, torch.bfloat16)
    with torch.no_grad():
        answer = model.generate(torch.tensor([prompt]), max_new_tokens=24, do_sample=False)[0, len(prompt) :]
    assert "Paris" in tokenizer.decode(answer)
    assert answer[-1] == tokenizer.eos_token_id
