"""The functions of the trainer's process, which keeps the trainer in memory between calls."""

import gc
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conf.schema import TrainerConfig
from conf.sections.lessons import CorrectionsConfig, DistillConfig, FeedbackConfig, LessonConfig, PicksConfig
from conf.sections.training import ADAPTER_RATE_FACTOR
from conf.storage.durable import room_for, size_of
from models.hf.checkpoint import base_of, keep, learned, new_draft, write_learned, write_lineage
from models.hf.hardware import release_gpu_memory, return_freed_memory
from models.lessons.pace import Pace, examples_used
from models.rollout import Rollout

if TYPE_CHECKING:  # only the trainer's process imports the trainer
    from models.trainer import Trainer

_trainer: "Trainer | None" = None
_held: str | None = None  # the digest of the checkpoint whose weights the trainer holds


class WrongCheckpointError(Exception):
    """The trainer does not hold the checkpoint whose state it should save."""


@dataclass(frozen=True)
class Predecessor:
    """The starting point of an update.

    `base`: the checkpoint that the block of rounds began with. `digest`: the digest of the checkpoint to update.
    `state`: the trainer state after the previous round, or None in a block's first round.
    """

    base: Path
    digest: str
    state: Path | None


@dataclass(frozen=True)
class Updated:
    """The result of an update: the new checkpoint and the trainer's metrics."""

    checkpoint: Path
    metrics: dict[str, float]


def prepare() -> None:
    """Import the trainer's modules ahead of time, so that the first call does not have to."""
    import models.trainer  # noqa: F401


def lesson(
    checkpoint: Path,
    config: TrainerConfig,
    lesson: DistillConfig | LessonConfig,
    examples: Sequence[Any],
    checkpoints: Path,
    pace: Pace | None = None,
    names: Sequence[str | None] = (),
    settled: Collection[str] = (),
) -> tuple[Path, list[dict[str, float]]]:
    """Train on a lesson's examples. The type of the lesson's configuration determines the method.

    `examples`: in the format of the method's function in `models/lessons/sft_preference.py`. `names`: for each example,
    the name of its lesson in the journal, or None. `settled`: names of lessons that have nothing to train on and count
    as learned. Returns the new checkpoint, and the metrics of every step. The checkpoint lists the lessons that it has
    learned, including its parent's. On a CPU, the same starting checkpoint gives the same result bit for bit.
    """
    global _trainer
    from models.lessons import sft_preference
    from models.trainer import Trainer

    _let_go()
    _trainer = Trainer.load(checkpoint, lesson_config(config, lesson.learning_rate))
    train: Any = sft_preference.imitation
    if isinstance(lesson, FeedbackConfig):
        train = sft_preference.kto
    elif isinstance(lesson, CorrectionsConfig | PicksConfig):
        train = sft_preference.dpo
    curve = list(train(_trainer, examples, lesson, config.seed, pace))
    taken = examples_used(len(examples), lesson, config.seed, len(curve))
    waiting = {name for number, name in enumerate(names) if number not in taken}  # a text waits if any piece does
    base = base_of(checkpoint).name if config.lora is not None and config.lora.keep else None
    kept = _keep(_trainer, checkpoints, checkpoint.name, base, lessons={*filter(None, names), *settled} - waiting)
    _let_go()
    return kept, curve


def lesson_config(config: TrainerConfig, learning_rate: float) -> TrainerConfig:
    """Return the trainer's configuration for a lesson, with the lesson's learning rate and without a KL term.

    Adapters need a higher learning rate than full fine-tuning. A KL term would need a second model.
    """
    rate = learning_rate * (ADAPTER_RATE_FACTOR if config.lora else 1.0)
    optimizer = config.optimizer.model_copy(update={"learning_rate": rate})
    grpo = config.grpo.model_copy(update={"kl_coefficient": 0.0})
    return config.model_copy(update={"optimizer": optimizer, "grpo": grpo})


def update(
    predecessor: Predecessor,
    config: TrainerConfig,
    rollouts: Sequence[Rollout],
    advantages: Sequence[float] | Sequence[Sequence[float]],
    checkpoints: Path,
    retired: Sequence[Path] = (),
    rate_factor: float = 1.0,
) -> Updated:
    """Take a round's optimizer steps, after reloading the trainer if it does not hold the predecessor's weights.

    So an update that failed after its steps, or whose reply was lost, can be repeated: no step is taken twice, and the
    checkpoint is the same (on a CPU, bit for bit). The new checkpoint is not durable yet. `retired`: folders to remove
    before it is written. Raises StateError if the trainer state is damaged or not the predecessor's.
    """
    global _held
    trainer = _trainer_at(predecessor, config)
    _held = None  # until the checkpoint is written
    metrics = trainer.update(rollouts, advantages, rate_factor)
    # Right before as much is written, so that the page cache reuses their memory: on a virtual machine, the first use
    # of any memory is several times slower.
    for folder in retired:
        shutil.rmtree(folder, ignore_errors=True)
    base = base_of(predecessor.base).name if config.lora is not None else None
    checkpoint = _keep(trainer, checkpoints, parent=predecessor.digest, base=base, durable=False)
    _held = checkpoint.name
    _make_room(trainer)
    return Updated(checkpoint, metrics)


def logprobs(predecessor: Predecessor, config: TrainerConfig, rollouts: Sequence[Rollout]) -> list[list[float]]:
    """Return the log-probability, in nats, of each token of each rollout under the policy that `update` would train.

    If the trainer has to be loaded for this, it stays loaded for the update. Raises StateError as `update` does.
    """
    trainer = _trainer_at(predecessor, config)
    found = trainer.logprobs(rollouts)
    _make_room(trainer)
    return found


def _trainer_at(predecessor: Predecessor, config: TrainerConfig) -> "Trainer":
    """Return the trainer with the predecessor's weights, loading it if it is not already in memory."""
    global _trainer, _held
    from models.trainer import Trainer

    # a new block starts with a new optimizer, even if the trainer holds the same weights; and `logprobs` may have
    # loaded the trainer with a different configuration
    elsewhere = _held != predecessor.digest or _trainer is None or _trainer.checkpoint != predecessor.base
    if _trainer is None or elsewhere or _trainer.config != config:
        _let_go()  # there may not be memory for two trainers
        _trainer = Trainer.load(
            predecessor.base, config, predecessor.state, predecessor.base, checkpoint_digest=predecessor.digest
        )
        _held = predecessor.digest
    _trainer.move_state(_trainer.device)
    return _trainer


def _make_room(trainer: "Trainer") -> None:
    """Leave room for the engine: on a GPU, only the trainer's weights stay; freed memory goes back to the system."""
    trainer.move_state("cpu")
    release_gpu_memory()
    return_freed_memory()


def teacher_logprobs(
    teacher: Path, config: TrainerConfig, rollouts: Sequence[Rollout], temperature: float = 1.0
) -> list[list[float]]:
    """Load a teacher alongside the trainer, and return its log-probability of every token. The teacher is not kept."""
    from models.lessons.on_policy_distillation import teacher_logprobs as scored

    try:
        return scored(teacher, config, rollouts, temperature)
    finally:
        gc.collect()  # the model and its layers form reference cycles
        release_gpu_memory()


def logprobs_of(checkpoint: Path, config: TrainerConfig, rollouts: Sequence[Rollout]) -> list[list[float]]:
    """Load a checkpoint in place of the trainer, and return its log-probability of every token. Neither is kept."""
    _let_go()
    return teacher_logprobs(checkpoint, config, rollouts)


def save_state(digest: str, state: Path) -> None:
    """Write the trainer's state to a folder. Raises WrongCheckpointError unless the trainer holds this checkpoint."""
    if _trainer is None or _held != digest:
        raise WrongCheckpointError(f"the trainer does not hold {digest}: its process was restarted after the update")
    _trainer.save_state(state, digest)


def _let_go() -> None:
    """Release the trainer's memory at once. The trainer forms reference cycles, so this runs the garbage collector."""
    global _trainer, _held
    _trainer, _held = None, None
    gc.collect()
    release_gpu_memory()
    return_freed_memory()


def merge(adapter: Path, checkpoints: Path, trust_remote_code: bool) -> Path:
    """Merge an adapter into its base and return the full checkpoint. Raises MergeError if the merge fails its check."""
    from models.hf import merging

    _let_go()  # the merge needs the trainer's memory
    draft = new_draft(checkpoints)
    base = base_of(adapter)
    with room_for(draft, size_of(base)):
        merging.merge(base, adapter, draft, trust_remote_code)
        write_lineage(draft, adapter.name)
        write_learned(draft, learned(adapter))
        return keep(draft, checkpoints)


def _keep(
    trainer: "Trainer",
    checkpoints: Path,
    parent: str,
    base: str | None = None,
    *,
    lessons: Collection[str] = (),
    durable: bool = True,
) -> Path:
    """Save the trainer's weights as a checkpoint. If the digest of the adapters' `base` is given, save adapters alone.

    `lessons`: names of the lessons learned since the checkpoint that the trainer started from.
    """
    draft = new_draft(checkpoints)
    with room_for(draft, size_of(trainer.checkpoint) if base is None else 0):
        if base is None:
            trainer.save_checkpoint(draft)
        else:
            trainer.save_adapter(draft)
        write_lineage(draft, parent, base)
        write_learned(draft, {*learned(trainer.checkpoint), *lessons})
        return keep(draft, checkpoints, durable=durable)
