"""What runs of the reward model in the trainer's process: it is fitted here, and the one that serves is held here."""

import gc
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import TrainerConfig
from conf.sections.lessons import RewardModelConfig
from conf.storage.durable import bytes_of, room_for
from models.checkpoint import keep, write_lineage
from models.hf.hardware import give_back
from models.lessons.preference_data import Pick
from models.lessons.ranking import Interval, Ranking, rank
from tasks.training import trainer_process

if TYPE_CHECKING:  # torch is loaded in the trainer's process only
    from models.reward_model import RewardModel

_judge: "RewardModel | None" = None
_held: tuple[Path, TrainerConfig] | None = None  # what the judge was loaded from


@dataclass(frozen=True)
class Fitted:
    """What came of a fit: how it ranks the held-out picks, and the checkpoint if it may serve.

    `learning_curve`: the accuracy after a fit to so many picks, the whole fit last. `steps`: each step's figures.
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
    """Fits a reward model to picks and judges it by others; keeps it, with the lineage `parent`, if it may serve.

    What is judged is what was written, so that what serves is what was judged.
    """
    from models.lessons.reward_fit import fit
    from models.reward_model import RewardModel

    trainer_process._let_go()
    let_go()  # there is no memory for two
    order = random.Random(seed).sample(list(picks), len(picks))
    curve = []
    for share in config.learning_curve:
        count = max(1, round(share * len(order)))
        curve.append((count, _judged(fit(backbone, order[:count], config, trainer, seed)[0], held_out).accuracy))
        gc.collect()  # model and layers refer to each other
    model, steps = fit(backbone, order, config, trainer, seed)
    draft = checkpoints / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    with room_for(draft, bytes_of(backbone)):
        model.save(draft)
        del model
        gc.collect()
        ranking = _judged(RewardModel.load(draft, trainer), held_out)
        write_lineage(draft, parent)
        checkpoint = keep(draft, checkpoints) if ranking.refusal is None else None
    shutil.rmtree(draft, ignore_errors=True)
    gc.collect()
    give_back()
    return Fitted(ranking, (*curve, (len(order), ranking.accuracy)), steps, checkpoint)


def judge(
    checkpoint: Path, groups: Sequence[tuple[list[int], list[list[int]]]], config: TrainerConfig
) -> list[list[float]]:
    """The rewards that a kept reward model gives to the answers to each prompt, all as token ids.

    It stays loaded from call to call. The same call gives the same rewards.
    """
    global _judge, _held
    from models.reward_model import RewardModel

    if _judge is None or _held != (checkpoint, config):
        let_go()
        _judge, _held = RewardModel.load(checkpoint, config), (checkpoint, config)
    found = _judge.judge(groups)
    give_back()
    return found


def _judged(model: "RewardModel", picks: Sequence[Pick]) -> Ranking:
    return rank(model.judge([(pick.prompt, pick.answers) for pick in picks]), picks)


def let_go() -> None:
    """Gives back the judge's memory: model and layers refer to each other, so the collector has to come by."""
    global _judge, _held
    _judge, _held = None, None
    gc.collect()
    give_back()
