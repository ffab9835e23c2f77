"""Fitting a reward model to picks."""

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conf.schema import OptimizerConfig, TrainerConfig
from conf.sections.lessons import RewardModelConfig
from models import lora
from models.lessons.preference_data import Pick
from models.optim.master_weights import MasterWeights
from models.packing.packing import Pack, pack, split
from models.reward_model import RewardModel, answer_group, choice_loss


def fit(
    backbone: Path, picks: Sequence[Pick], config: RewardModelConfig, trainer: TrainerConfig, seed: int
) -> tuple[RewardModel, list[dict[str, float]]]:
    """A reward model that begins with a checkpoint's backbone, after `config.epochs` passes over the picks.

    Returns the figures of every step with it. The words' embeddings stay what they are: a few hundred picks have
    nothing to teach most of them. With `trainer.lora` only adapters (without dropout) and the head are trained.
    """
    model = RewardModel(backbone, trainer)
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else [], device_type="cuda"):
        torch.manual_seed(seed)  # the adapters' first weights
        _choose_trained(model, trainer)
    own = [
        MasterWeights(model.model, _optimizer(trainer, config, config.learning_rate)),
        MasterWeights(model.head, _optimizer(trainer, config, config.head_learning_rate)),
    ]
    curve = [_step(model, own, picks, batch, config) for batch in _batches(picks, config, seed)]
    model.model.requires_grad_(False)
    model.head.requires_grad_(False)
    return model, curve


def _choose_trained(model: RewardModel, trainer: TrainerConfig) -> None:
    """Adapters where the night has them, else all layers; neither the embeddings nor the language model's own head."""
    if trainer.lora is not None:
        lora.attach(model.model, trainer.lora.model_copy(update={"dropout": 0.0}))
    own: Any = model.model
    own.get_input_embeddings().requires_grad_(False)
    own.get_output_embeddings().requires_grad_(False)


def _optimizer(trainer: TrainerConfig, config: RewardModelConfig, rate: float) -> OptimizerConfig:
    changes = {"learning_rate": rate, "warmup_steps": config.warmup_steps}
    return trainer.optimizer.model_copy(update=changes)


def _batches(picks: Sequence[Pick], config: RewardModelConfig, seed: int) -> Iterator[list[int]]:
    """Which picks each step learns: all of them once an epoch, in an order of its own."""
    chance = random.Random(seed)
    for _ in range(config.epochs):
        order = chance.sample(range(len(picks)), len(picks))
        yield from (
            order[start : start + config.picks_per_step] for start in range(0, len(order), config.picks_per_step)
        )


def _step(
    model: RewardModel,
    own: Sequence[MasterWeights],
    picks: Sequence[Pick],
    batch: Sequence[int],
    config: RewardModelConfig,
) -> dict[str, float]:
    """One step on a batch's mean loss, however it is cut into microbatches; one that is not finite is not taken."""
    mean_weight = sum(pick.weight for pick in picks) / len(picks) or 1.0  # all may be too old to count at all
    groups = [answer_group(picks[i].prompt, picks[i].answers, [i] * len(picks[i].answers)) for i in batch]
    budget = max(model.config.microbatch_tokens, *(group.tokens for group in groups))  # no pick may be cut
    total = 0.0
    for microbatch in split(groups, budget):
        packed = pack(microbatch, model.device)
        rewards, chosen, counts = _rows(model.rewards(packed), packed, picks)
        share = len(microbatch) / len(batch)
        loss = choice_loss(rewards, chosen, config.centering, counts / mean_weight) * share
        loss.backward()
        total += float(loss.detach())
    if not math.isfinite(total):
        for weights in own:
            weights.discard()
        return {"loss": total, "skipped": 1.0}
    return {"loss": total, "grad_norm": own[0].step(), "head_grad_norm": own[1].step()}


def _rows(rewards: Tensor, packed: Pack, picks: Sequence[Pick]) -> tuple[Tensor, Tensor, Tensor]:
    """A pack's rewards [picks, n] (−inf where a pick has fewer answers), what was chosen [picks], weights [picks]."""
    own = [picks[group.rows[0]] for group in packed.groups]
    rows = pad_sequence(list(rewards.split([len(pick.answers) for pick in own])), True, float("-inf"))
    chosen = torch.tensor([pick.chosen for pick in own], device=rewards.device)
    return rows, chosen, torch.tensor([pick.weight for pick in own], device=rewards.device)
