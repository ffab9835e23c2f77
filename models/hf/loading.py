"""Load models and tokenizers from Hugging Face folders, and turn conversations into tokens.

The night's main process needs only tokenizers. Imports for models take 6 s, so they happen only if a model is loaded.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from conf.schema import StudentConfig
from conf.storage.durable import read_json
from conf.storage.home import InputError
from models.hf.checkpoint import base_of, is_adapter

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Tokenizer: TypeAlias = "PreTrainedTokenizerBase"  # imported by type checkers alone
ALIGNMENT = 64  # bytes, as in torch's own allocations
# Letters, digits, spaces, line breaks, symbols and scripts that different tokenizers split differently.
PROBE_TEXT = "The 3 answers:  1,234.5 − 67 = “1167.5”\n\n\tdef f(x):\n\t\treturn x**2  # größer, 学校, школа, 🌒 <b>"
# For base models without a chat template: one turn per line, each after its speaker's name.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] | capitalize }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
GENERIC = "TokenizersBackend"  # a tokenizer that its tokenizer.json defines completely


def load_model(
    checkpoint: Path, dtype: "torch.dtype", device: "torch.device", trust_remote_code: bool = False
) -> "PreTrainedModel":
    """Load a causal language model from a local folder, with lean layers (see `models/packing/lean_layers.py`).

    An adapter is merged into its base in memory. Raises OSError unless the weights are safetensors, because loading
    other formats can run code.
    """
    from models.hf.lean import AutoModelForCausalLM
    from models.packing.lean_layers import make_lean

    model: Any = AutoModelForCausalLM.from_pretrained(
        base_of(checkpoint),
        dtype=dtype,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=trust_remote_code,
    )
    for parameter in model.parameters():  # the file's mapping may be unaligned, and alignment affects rounding
        if parameter.data_ptr() % ALIGNMENT:
            parameter.data = parameter.data.clone()
    if is_adapter(checkpoint):
        from models.hf.lora import merge_in_memory

        merge_in_memory(model, checkpoint)
    make_lean(model)
    return model.to(device)


def check_config(checkpoint: Path, trust_remote_code: bool = False) -> None:
    """Raise ValueError unless a local folder's configuration describes a causal language model that can be loaded.

    transformers' own errors pass through, such as those for an unreadable configuration or an unknown architecture.
    """
    from models.hf.lean import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

    config = AutoConfig.from_pretrained(base_of(checkpoint), local_files_only=True, trust_remote_code=trust_remote_code)
    custom = trust_remote_code and "AutoModelForCausalLM" in getattr(config, "auto_map", {})
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING and not custom:
        raise ValueError(f"{config.model_type} is not a causal language model that transformers knows")


@cache
def load_tokenizer(checkpoint: Path, trust_remote_code: bool = False) -> Tokenizer:
    """Load a folder's tokenizer (for an adapter, its base's). PLAIN_TEMPLATE stands in for a missing chat template."""
    folder = base_of(checkpoint)
    options: dict[str, Any] = {"local_files_only": True}
    loader: Any
    if _is_generic(folder):
        from transformers import TokenizersBackend as loader
    else:
        from models.hf.lean import AutoTokenizer as loader

        options["trust_remote_code"] = trust_remote_code
    tokenizer: Any = loader.from_pretrained(folder, **options)
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    return tokenizer


def _is_generic(folder: Path) -> bool:
    """Return whether a folder's tokenizer is certain to be generic, like that of a Llama saved by transformers 5.

    A generic tokenizer needs no class look-up, and so spares transformers from importing everything that models need.
    """
    try:
        config, tokenizer = (read_json(folder / f"{name}.json", {}) for name in ("config", "tokenizer_config"))
    except ValueError:  # loading the tokenizer will report what is wrong
        return False
    named = config.get("model_type"), tokenizer.get("tokenizer_class")
    return named == ("llama", GENERIC) and "auto_map" not in tokenizer


def check_tokenizers(student: Path, other: Path, key: str, trust_remote_code: bool = False) -> None:
    """Raise InputError, naming the configuration `key`, unless the other model's tokenizer works like the student's.

    Vocabulary, ids, end token and splitting must agree. Equal vocabularies are not enough: the same text can still be
    split into different tokens.
    """
    first, second = (load_tokenizer(folder, trust_remote_code) for folder in (student, other))
    difference = None
    if first.get_vocab() != second.get_vocab():
        difference = f"their vocabularies ({len(first.get_vocab())} and {len(second.get_vocab())} tokens) differ"
    elif first.eos_token_id != second.eos_token_id:
        difference = f"their end tokens ({first.eos_token!r} and {second.eos_token!r}) differ"
    elif encode(first, PROBE_TEXT) != encode(second, PROBE_TEXT):
        difference = "they split the same text into different tokens"
    if difference is not None:
        raise InputError(
            f"{key}: {other}: its tokenizer is not the student's: {difference}; name a model of the student's own "
            "family"
        )


def prompt_tokens(
    tokenizer: Tokenizer,
    messages: Sequence[dict[str, str]],
    student: StudentConfig,
    *,
    answering: bool = True,
) -> list[int]:
    """Return a conversation's token ids; if `answering`, they end with the header of the assistant's next answer."""
    return encode(tokenizer, rendered_prompt(tokenizer, messages, student, answering=answering))


def rendered_prompt(
    tokenizer: Tokenizer,
    messages: Sequence[dict[str, str]],
    student: StudentConfig,
    *,
    answering: bool = True,
) -> str:
    """Return a conversation's text as the chat template renders it. `answering`: as in `prompt_tokens`."""
    system = [{"role": "system", "content": student.system}] if student.system is not None else []
    arguments: dict[str, Any] = dict(student.template_arguments)
    rendered: Any = tokenizer.apply_chat_template(
        [*system, *messages], add_generation_prompt=answering, tokenize=False, **arguments
    )
    return rendered


def answer_tokens(tokenizer: Tokenizer, answer: str, finished: bool = True) -> list[int]:
    """Return the token ids of an assistant's answer, with the end token if it is `finished`."""
    assert isinstance(tokenizer.eos_token_id, int)
    return [*encode(tokenizer, answer), *([tokenizer.eos_token_id] if finished else [])]


def answer_text(tokenizer: Tokenizer, token_ids: list[int]) -> str:
    """Return an answer's text, without special tokens and without a last character of which only a part was written."""
    text = tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return str(text).rstrip("\ufffd")


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the token ids of a text, without adding special tokens."""
    return tokenizer.encode(text, add_special_tokens=False)
