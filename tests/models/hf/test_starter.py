"""The starter is unpacked to the bytes that transformers would write."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from models.hf.checkpoint import digest_file, digest_folder
from models.hf.loading import load_tokenizer
from models.hf.starter import PACKAGE, STARTER_FILE, write_starter


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    write_starter(folder)
    return folder


@pytest.mark.slow
def test_the_weights_and_the_tokenizer_stay_the_same(starter: Path) -> None:
    assert digest_file(starter / "model.safetensors").startswith("7ef915c9bf9d94d8d702")
    assert digest_file(starter / "tokenizer.json").startswith("bf346d64f6f0fbcefb4c")


@pytest.mark.slow
def test_its_tokenizer_is_what_transformers_would_choose(starter: Path) -> None:
    ours: Any = load_tokenizer(starter)
    theirs: Any = AutoTokenizer.from_pretrained(starter, local_files_only=True)
    assert type(ours) is type(theirs)
    assert ours.init_kwargs == theirs.init_kwargs
    assert ours.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()


@pytest.mark.full
def test_transformers_unpacks_it_to_the_same_bytes(starter: Path, tmp_path: Path) -> None:
    package = importlib.util.find_spec(PACKAGE)
    assert package is not None
    assert package.submodule_search_locations is not None
    source = Path(package.submodule_search_locations[0])
    quantized = GgufConfig(gguf_file=STARTER_FILE, dequantize=True)
    options: dict[str, Any] = {"quantization_config": quantized, "dtype": torch.float32}
    model: Any = AutoModelForCausalLM.from_pretrained(source, gguf_file=STARTER_FILE, **options)
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(source, gguf_file=STARTER_FILE).save_pretrained(tmp_path)
    assert digest_folder(starter) == digest_folder(tmp_path)
