"""Merge an adapter into its base on disk, and verify that the merged model computes the same log-probabilities."""

import models.hf.lean  # noqa: F401  # isort: skip  # before transformers and peft
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from models.engine.sync_probe import TOLERANCE, Probe, probe_tokens, read_probe, write_probe
from models.hf.checkpoint import MergeError, base_of, copy_companions, is_adapter
from models.hf.hardware import compute_dtype
from models.hf.lean import AutoModelForCausalLM
from models.hf.loading import load_model, load_tokenizer
from models.hf.lora import merged_weights, rounding_of


def merge(base: Path, adapter: Path, target: Path, trust_remote_code: bool = False) -> None:
    """Merge an adapter into its base, write the full checkpoint to `target`, and verify it with `prove_merge`."""
    copy_companions(base, target)
    merge_weights(base, adapter, target, trust_remote_code)


def merge_weights(base: Path, adapter: Path, target: Path, trust_remote_code: bool = False) -> None:
    """Merge an adapter into its base, write the weights and configuration to `target`, and verify them.

    The probe of an adapter from another program is taken here, from the base with the adapter.
    """
    precision = compute_dtype(torch.device("cuda" if torch.cuda.is_available() else "cpu"))  # as in the trainer
    model = load_model(base, precision, torch.device("cpu"), trust_remote_code)
    PeftModel.from_pretrained(model, adapter)  # adds the adapters to the model in place
    model.save_pretrained(target, state_dict=merged_weights(model, rounding_of(adapter)))
    adapted = read_probe(adapter)
    if adapted is None:
        token_ids = probe_tokens(load_tokenizer(base, trust_remote_code))
        adapted = Probe(token_ids, _logprobs(model, token_ids))
    prove_merge(target, adapted, trust_remote_code)


def prove_merge(checkpoint: Path, adapted: Probe, trust_remote_code: bool = False) -> None:
    """Verify that a merged checkpoint computes what the model with its adapters does, and write its sync probe.

    transformers computes the probe's log-probabilities from the merged files. Raises MergeError if they differ from
    those of `adapted`, the probe of the model with its adapters, by more than TOLERANCE on average.
    """
    merged = file_logprobs(checkpoint, adapted.token_ids, trust_remote_code)
    difference = adapted.difference(merged)
    if not difference <= TOLERANCE:
        raise MergeError(
            f"the merged model's log-probabilities differ from the adapters' by {difference:.3f} nats a token, more "
            f"than {TOLERANCE}: the merge is wrong; please report this"
        )
    write_probe(checkpoint, Probe(adapted.token_ids, merged))


def file_logprobs(checkpoint: Path, token_ids: Sequence[int], trust_remote_code: bool = False) -> list[float]:
    """Return the probe tokens' log-probabilities in nats, computed by transformers from a checkpoint's files."""
    model: Any = AutoModelForCausalLM.from_pretrained(
        base_of(checkpoint),
        dtype="auto",
        attn_implementation="sdpa",
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=trust_remote_code,
    )
    if is_adapter(checkpoint):
        model = PeftModel.from_pretrained(model, checkpoint)
    return _logprobs(model, token_ids)


def _logprobs(model: Any, token_ids: Sequence[int]) -> list[float]:
    ids = torch.tensor([token_ids])
    with torch.no_grad():
        logits = model.eval()(input_ids=ids, use_cache=False).logits[0, :-1].float()
    return logits.log_softmax(dim=-1).gather(1, ids[0, 1:, None]).squeeze(1).tolist()
