"""Pretrain a new student on its texts: next-token prediction, resumable, with a curve."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from conf.storage.durable import make_folder, read_json, room_for, sync, sync_folder, write_atomically
from conf.storage.home import InputError
from models.hf.hardware import compute_dtype, resolve_device
from tasks.pretraining.new_model import new_model, new_tokenizer, save
from tasks.pretraining.texts import texts

BATCH, LENGTH = 4, 256  # sequences in a step, and tokens in each
RATES = {"1M": 3e-3, "5M": 1e-3, "15M": 5e-4, "49M": 4e-4}  # the peak learning rate
TOKENS = {"1M": 1_000_000, "5M": 8_000_000, "15M": 20_000_000, "49M": 40_000_000}
WARMUP, COOLDOWN = 0.05, 0.4  # shares of the steps in which the rate rises from 0, and falls to 0 again
TOKENS_A_TEXT = 60  # of a generated text, on average
CURVE, STATE, RECIPE = "curve.jsonl", "state.pt", "recipe.json"
SAVED_EVERY = 60.0  # seconds


def pretrain(folder: Path, size: str, tokens: int, seed: int = 1) -> Iterator[dict[str, float]]:
    """Pretrain a student of one of the sizes on so many tokens, and write it to `folder`. Yield each step's figures.

    An interrupted run goes on from its last state, which is saved every minute beside `folder`. A finished one yields
    nothing. `curve.jsonl` has a line per step: the step, its loss in nats a token, and its seconds. Raises InputError
    if the folder, or what an interrupted run left, was made from other texts, tokens or another seed.
    """
    draft = folder.with_name(f"{folder.name}.draft")
    found = texts(str(seed), tokens // TOKENS_A_TEXT)
    digest = hashlib.sha256("\0".join(found).encode()).hexdigest()[:20]
    recipe = {"size": size, "tokens": tokens, "seed": seed, "texts": digest}
    for known in (folder, draft):
        _refuse_another(known, recipe)
    if folder.exists():
        (folder / STATE).unlink(missing_ok=True)  # left by a crash right after the last step
        return
    make_folder(draft)
    write_atomically(draft / RECIPE, json.dumps(recipe))
    tokenizer = new_tokenizer(found[:20_000])
    read = _encoded(tokenizer, found)
    device = resolve_device("auto")
    precision = compute_dtype(device)  # of the passes; the weights stay fp32
    model = new_model(size, tokenizer, seed).to(device)
    optimizer = _optimizer(model)
    steps, begun = max(1, tokens // (BATCH * LENGTH)), 0
    if (draft / STATE).exists():
        state = torch.load(draft / STATE, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begun = state["step"]
    curve = (draft / CURVE).read_text().splitlines()[:begun] if begun else []
    saved = time.monotonic()
    for step in range(begun, steps):
        started = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = RATES[size] * rate_factor(step, steps)
        rows = np.random.default_rng([seed, step]).integers(len(read) - LENGTH, size=BATCH)
        batch = torch.from_numpy(np.stack([read[row : row + LENGTH + 1] for row in rows]).astype(np.int64)).to(device)
        with torch.autocast(device.type, precision, enabled=precision != torch.float32):
            logits = model(input_ids=batch[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        figures = {"step": step + 1, "steps": steps, "loss": loss.item(), "seconds": time.perf_counter() - started}
        curve.append(json.dumps(figures))
        yield figures
        if time.monotonic() - saved > SAVED_EVERY or step == steps - 1:
            write_atomically(draft / CURVE, "\n".join(curve) + "\n")
            _save_state(draft, model, optimizer, step + 1)
            saved = time.monotonic()
    save(draft, model, tokenizer)
    sync_folder(draft)
    draft.rename(folder)
    sync(folder.parent)
    (folder / STATE).unlink()


def _refuse_another(folder: Path, recipe: dict[str, Any]) -> None:
    made = read_json(folder / RECIPE, recipe)
    for key, value in recipe.items():  # the texts, which depend on the others, come last
        if made[key] != value:
            what = f"{key} {made[key]}, not {value}" if key != "texts" else "other texts; is NIGHTSCHOOL_DATA the same?"
            raise InputError(f"{folder}: made with {what} (remove it to make another)")


def _optimizer(model: Any) -> torch.optim.Optimizer:
    """Return AdamW with weight decay for the layers' matrices alone."""
    parameters = dict(model.named_parameters())
    matrices = [parameter for name, parameter in parameters.items() if parameter.ndim == 2 and "embed" not in name]
    others = [parameter for name, parameter in parameters.items() if parameter.ndim != 2 or "embed" in name]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)


def rate_factor(step: int, steps: int) -> float:
    """Return the share of the peak learning rate: a linear rise, a plateau, and a linear fall (a trapezoid)."""
    return min(1.0, (step + 1) / (WARMUP * steps), (steps - step) / (COOLDOWN * steps))


def _encoded(tokenizer: Any, found: Sequence[str]) -> np.ndarray:
    """Return the texts' tokens, with an end token after each text."""
    encoded = tokenizer(list(found), add_special_tokens=False)["input_ids"]
    return np.array([token for text in encoded for token in (*text, tokenizer.eos_token_id)], dtype=np.uint16)


def _save_state(folder: Path, model: Any, optimizer: torch.optim.Optimizer, step: int) -> None:
    draft = folder / f"{STATE}.draft"
    with room_for(draft, 3 * sum(weights.nbytes for weights in model.parameters())):  # AdamW keeps two moments
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, draft)
    sync(draft)
    draft.rename(folder / STATE)
    sync(folder)
