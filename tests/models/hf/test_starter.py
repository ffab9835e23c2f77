"""The starter is unpacked to the same bytes as ever."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from models.hf.checkpoint import digest_file
from models.hf.loading import load_tokenizer
from models.hf.starter import write_starter


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
