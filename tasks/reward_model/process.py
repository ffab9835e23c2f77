"""The reward model in the trainer's process: fits it, and keeps the one that serves loaded."""

import gc
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import TrainerConfig
from conf.sections.lessons import RewardModelConfig
from conf.storage.durable import room_for, size_of
from models.checkpoint import keep, write_lineage
from models.hf.hardware import release_gpu_memory
from models.lessons.preference_data import Pick
from models.lessons.ranking import Interval, Ranking, rank
from tasks.training import trainer_process

if TYPE_CHECKING:  # imports torch, which only the trainer's process needs
    from models.reward_model import RewardModel

_judge: "RewardModel | None" = None
_held: tuple[Path, TrainerConfig] | None = None  # what the judge was loaded from


@dataclass(frozen=True)
class Fitted:
    """The outcome of a fit: its ranking of the held-out picks, and the checkpoint if it may serve.

    `learning_curve`: numbers of picks and the accuracy after a fit to them, all picks last. `steps`: metrics by step.
    """

    ranking: Ranking
    learning_curve: tuple[tuple[int, Interval], ...]
    steps: list[dict[str, float]]
    checkpoint: Path | None


def fit_reward_model(
    backbone: Path,
    parent: str | None,
    picks: Sequence[Pick],
    held_out: Sequence[Pick],
    config: RewardModelConfig,
    trainer: TrainerConfig,
    seed: int,
    checkpoints: Path,
) -> Fitted:
    """Fit a reward model and evaluate it on held-out picks; keep it, with the lineage `parent`, if it may serve.

    It is evaluated as loaded back from disk, so that the model that serves is the one that was evaluated.
    """
    from models.lessons.reward_fit import fit
    from models.reward_model import RewardModel

    trainer_process._let_go()
    let_go()  # memory suffices for one model
    order = random.Random(seed).sample(list(picks), len(picks))
    curve = []
    for share in config.learning_curve:
        count = max(1, round(share * len(order)))
        curve.append((count, _evaluate(fit(backbone, order[:count], config, trainer, seed)[0], held_out).accuracy))
        gc.collect()  # model and layers refer to each other
    model, steps = fit(backbone, order, config, trainer, seed)
    draft = checkpoints / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    with room_for(draft, size_of(backbone)):
        model.save(draft)
        del model
        gc.collect()
        ranking = _evaluate(RewardModel.load(draft, trainer), held_out)
        write_lineage(draft, parent)
        checkpoint = keep(draft, checkpoints) if ranking.refusal is None else None
    shutil.rmtree(draft, ignore_errors=True)
    gc.collect()
    release_gpu_memory()
    return Fitted(ranking, (*curve, (len(order), ranking.accuracy)), steps, checkpoint)


def judge(
    checkpoint: Path, groups: Sequence[tuple[list[int], list[list[int]]]], config: TrainerConfig
) -> list[list[float]]:
    """Return a kept reward model's rewards of the answers to each prompt, all as token ids.

    The model stays loaded between calls. The same call returns the same rewards.
    """
    global _judge, _held
    from models.reward_model import RewardModel

    if _judge is None or _held != (checkpoint, config):
        let_go()
        _judge, _held = RewardModel.load(checkpoint, config), (checkpoint, config)
    rewards = _judge.judge(groups)
    release_gpu_memory()
    return rewards


def _evaluate(model: "RewardModel", picks: Sequence[Pick]) -> Ranking:
    return rank(model.judge([(pick.prompt, pick.answers) for pick in picks]), picks)


def let_go() -> None:
    """Release the judge's memory; the garbage collector is needed because model and layers refer to each other."""
    global _judge, _held
    _judge, _held = None, None
    gc.collect()
    release_gpu_memory()
