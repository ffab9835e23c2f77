"""Fit a reward model to the owner's picks."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conf.schema import TrainerConfig
from conf.sections.lessons import RewardModelConfig
from conf.sections.training import ADAPTER_RATE_FACTOR, OptimizerConfig
from models.hf import lora
from models.hf.hardware import free_memory, tokens_per_pass
from models.lessons.preference_data import Pick
from models.optim.master_weights import MasterWeights
from models.packing.packing import Pack, pack, split
from models.packing.passes import fit_passes
from models.reward_model import RewardModel, answer_group, choice_loss

PICKS_PER_STEP = 8
HEAD_RATE_FACTOR = 50  # times the backbone's learning rate
WARMUP_STEPS = 4
CENTERING = 0.01  # keeps a pick's rewards around 0


def fit(
    start: Path,
    picks: Sequence[Pick],
    config: RewardModelConfig,
    trainer: TrainerConfig,
    seed: int,
    *,
    continues: bool = False,
) -> tuple[RewardModel, list[dict[str, float]]]:
    """Fit a reward model to picks, starting from a checkpoint. Return the model and the metrics of every step.

    Trains for `config.epochs` epochs, or for one if it `continues` a reward model already fitted to most of the picks.
    The word embeddings stay frozen, because a few hundred picks cover little of the vocabulary. With `trainer.lora`,
    only the head and the adapters are trained; the adapters have no dropout and ten times the learning rate.
    """
    model = RewardModel.load(start, trainer) if continues else RewardModel(start, trainer)
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else [], device_type="cuda"):
        torch.manual_seed(seed)  # for the adapters' initial weights
        if trainer.lora is not None:
            lora.attach(model.model, trainer.lora.model_copy(update={"dropout": 0.0}))
    transformer: Any = model.model
    transformer.get_input_embeddings().requires_grad_(False)
    transformer.get_output_embeddings().requires_grad_(False)
    optimizers = [
        MasterWeights(part, OptimizerConfig(learning_rate=config.learning_rate * factor, warmup_steps=WARMUP_STEPS))
        for part, factor in (
            (transformer, ADAPTER_RATE_FACTOR if trainer.lora else 1.0),
            (model.head, HEAD_RATE_FACTOR),
        )
    ]
    most = tokens_per_pass(model.config.microbatch_tokens, model.device)
    tokens = fit_passes(model.model, trainer.lora is not None, free_memory(model.device), most)
    rng, size = random.Random(seed), PICKS_PER_STEP
    orders = [rng.sample(range(len(picks)), len(picks)) for _ in range(1 if continues else config.epochs)]
    batches = [order[start : start + size] for order in orders for start in range(0, len(order), size)]
    return model, [_step(model, optimizers, picks, batch, tokens) for batch in batches]


def _step(
    model: RewardModel, optimizers: Sequence[MasterWeights], picks: Sequence[Pick], batch: Sequence[int], tokens: int
) -> dict[str, float]:
    mean_weight = sum(pick.weight for pick in picks) / len(picks) or 1.0  # all picks may be too old to count
    groups = [answer_group(picks[i].prompt, picks[i].answers, [i] * len(picks[i].answers)) for i in batch]
    budget = max(tokens, *(group.tokens for group in groups))  # so that no pick is split
    total = 0.0
    for microbatch in split(groups, budget):
        packed = pack(microbatch, model.device)
        rewards, chosen, weights = _rows(model.rewards(packed), packed, picks)
        share = len(microbatch) / len(batch)
        loss = choice_loss(rewards, chosen, CENTERING, weights / mean_weight) * share
        loss.backward()
        total += float(loss.detach())
    if not math.isfinite(total):
        for optimizer in optimizers:
            optimizer.discard()
        return {"loss": total, "skipped": 1.0}
    return {"loss": total, "grad_norm": optimizers[0].step(), "head_grad_norm": optimizers[1].step()}


def _rows(rewards: Tensor, packed: Pack, picks: Sequence[Pick]) -> tuple[Tensor, Tensor, Tensor]:
    """Return a pack's rewards [picks, n] (−inf beyond a pick's answers), chosen indices [picks] and weights [picks]."""
    members = [picks[group.rows[0]] for group in packed.groups]
    rows = pad_sequence(list(rewards.split([len(pick.answers) for pick in members])), True, float("-inf"))
    chosen = torch.tensor([pick.chosen for pick in members], device=rewards.device)
    return rows, chosen, torch.tensor([pick.weight for pick in members], device=rewards.device)
