"""A student's folder without a model: a real tokenizer whose tokens are single bytes, and a few bytes as weights."""

import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

END = 256


def write_student(folder: Path) -> Path:
    """Write config.json, weights (a few bytes) and the tokenizer; return the folder."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (folder / "model.safetensors").write_bytes(b"weights")
    vocabulary = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    inner = Tokenizer(BPE(vocab=vocabulary | {"<end>": END}, merges=[]))
    inner.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = ByteLevelDecoder()
    PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>").save_pretrained(folder)
    return folder
