"""What runs in the trainer's process: the trainer is held here from call to call."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import DistillConfig, TrainerConfig
from models.checkpoint import keep, write_lineage
from models.rollout import Rollout

if TYPE_CHECKING:  # the trainer is loaded in its own process only
    from models.distillation import Example
    from models.trainer import Trainer

_trainer: "Trainer | None" = None
_held: str | None = None  # the digest of the checkpoint that the trainer stands at


@dataclass(frozen=True)
class Predecessor:
    """What an update goes on from: the night's base checkpoint, and, after round 1, the state of the round before."""

    base: Path
    digest: str
    state: Path | None


@dataclass(frozen=True)
class Updated:
    """What came of an update: the new checkpoint and the round's figures."""

    checkpoint: Path
    metrics: dict[str, float]


def unpack_starter(folder: Path) -> None:
    """Writes the starter student into a folder."""
    from models.starter import write_starter

    write_starter(folder)


def lesson(
    checkpoint: Path,
    config: TrainerConfig,
    lessons: DistillConfig,
    examples: Sequence["Example"],
    checkpoints: Path,
) -> tuple[Path, list[dict[str, float]]]:
    """Distils worked answers into a checkpoint. Returns the new checkpoint and the figures of every step."""
    global _trainer, _held
    from models.distillation import distill
    from models.trainer import Trainer

    _trainer, _held = None, None
    trainer = Trainer.load(checkpoint, lesson_config(config, lessons))
    curve = list(distill(trainer, examples, lessons, config.seed))
    return _keep(trainer, checkpoints, parent=checkpoint.name), curve


def lesson_config(config: TrainerConfig, lessons: DistillConfig) -> TrainerConfig:
    """The trainer's configuration with the lessons' own learning rate and warm-up."""
    changes = {"learning_rate": lessons.learning_rate, "warmup_steps": lessons.warmup_steps}
    return config.model_copy(update={"optimizer": config.optimizer.model_copy(update=changes)})


def update(
    predecessor: Predecessor,
    config: TrainerConfig,
    rollouts: Sequence[Rollout],
    advantages: Sequence[float] | Sequence[Sequence[float]],
    checkpoints: Path,
) -> Updated:
    """One round's update. A trainer that does not stand at the predecessor is loaded anew: no step is taken twice."""
    global _trainer, _held
    from models.trainer import Trainer

    if _trainer is None or _held != predecessor.digest:
        _trainer = Trainer.load(predecessor.base, config, predecessor.state, reference=predecessor.base)
    _held = None
    metrics = _trainer.update(rollouts, advantages)
    checkpoint = _keep(_trainer, checkpoints, parent=predecessor.digest)
    _held = checkpoint.name
    return Updated(checkpoint, metrics)


def save_state(digest: str, state: Path) -> None:
    """Writes the trainer's state into a folder. Raises RuntimeError where it does not stand at `digest`."""
    if _trainer is None or _held != digest:
        raise RuntimeError(f"the trainer does not hold {digest}: its process was restarted; the round is updated again")
    _trainer.weights.save(state)


def _keep(trainer: "Trainer", checkpoints: Path, parent: str) -> Path:
    draft = checkpoints / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    trainer.save_checkpoint(draft)
    write_lineage(draft, parent)
    return keep(draft, checkpoints)
