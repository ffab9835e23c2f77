"""What runs in the trainer's process: the trainer is held here from call to call."""

import gc
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conf.schema import TrainerConfig
from conf.sections.lessons import DistillConfig, FeedbackConfig, LessonConfig, PicksConfig
from conf.sections.training import ADAPTER_RATE_FACTOR
from conf.storage.durable import room_for, size_of
from models.hf.checkpoint import base_of, keep, learned, new_draft, write_learned, write_lineage
from models.hf.hardware import release_gpu_memory
from models.lessons.pace import Pace, came
from models.rollout import Rollout

if TYPE_CHECKING:  # the trainer is loaded in its own process only
    from models.trainer import Trainer

_trainer: "Trainer | None" = None
_held: str | None = None  # the digest of the checkpoint whose weights the trainer holds


class ElsewhereError(Exception):
    """The trainer holds another checkpoint than the one asked for, or none."""


@dataclass(frozen=True)
class Predecessor:
    """What an update starts from.

    `base`: the checkpoint that the block of rounds began with. `digest`: the current checkpoint's. `state`: the trainer
    state of the round before; None in a block's first round.
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
    """Import what the trainer needs, so that its first call need not."""
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
    """Learn examples in the way that the type of the lesson's configuration asks for.

    `examples`: as that function of `models/lessons/sft_preference.py` takes them. `names`: of each one's lesson in the
    journal, None for others. `settled`: names of lessons that have nothing to learn. The checkpoint keeps the names of
    what came, and of what its parent has learned. Returns it with the metrics of every step. On a CPU the same
    checkpoint gives the same bits again.
    """
    global _trainer
    from models.trainer import Trainer

    _let_go()
    _trainer = Trainer.load(checkpoint, lesson_config(config, lesson.learning_rate))
    share = lesson.kept_share if isinstance(lesson, DistillConfig) else 1.0
    before = {name: weight.detach().clone() for name, weight in _trainer.weights.trained.items()} if share < 1 else {}
    curve = []
    for figures in _steps(_trainer, examples, lesson, config.seed, pace):
        _trainer.round_stochastically()
        curve.append(figures)
    if before and curve:
        _trainer.keep_share(before, share)
    taken = came(len(examples), lesson, config.seed, len(curve))
    waiting = {name for number, name in enumerate(names) if number not in taken}  # perhaps a part of a text
    base = base_of(checkpoint).name if config.lora is not None and config.lora.keep else None
    kept = _keep(_trainer, checkpoints, checkpoint.name, base, lessons={*filter(None, names), *settled} - waiting)
    _let_go()
    return kept, curve


def _steps(
    trainer: "Trainer",
    examples: Sequence[Any],
    lesson: DistillConfig | LessonConfig,
    seed: int,
    pace: Pace | None,
) -> Iterator[dict[str, float]]:
    from models.lessons import sft_preference

    learn: Callable[..., Iterator[dict[str, float]]] = sft_preference.imitation
    if isinstance(lesson, DistillConfig):
        learn = sft_preference.distill
    elif isinstance(lesson, FeedbackConfig):
        learn = sft_preference.kto
    elif isinstance(lesson, PicksConfig) and lesson.method == "dpo":
        learn = sft_preference.dpo
    return learn(trainer, examples, lesson, seed, pace)


def lesson_config(config: TrainerConfig, learning_rate: float) -> TrainerConfig:
    """Return the trainer's configuration for a lesson: its learning rate, and no KL term.

    Adapters learn at a higher rate than in full fine-tuning. A KL term would need a second model.
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
    with_signal: int | None = None,
    rate_factor: float = 1.0,
) -> Updated:
    """Take a round's optimizer steps. A trainer that does not hold the predecessor is loaded again.

    So no step is taken twice: an update that failed after its steps, or whose answer was lost, may be repeated, and
    comes to the same checkpoint (on a CPU to the last bit). The checkpoint is not durable yet. `retired` checkpoints
    are removed right before it is written. Raises StateError where the state is damaged or not the predecessor's.
    """
    global _held
    trainer = _trainer_at(predecessor, config)
    _held = None  # until the checkpoint is written
    metrics = trainer.update(rollouts, advantages, with_signal, rate_factor)
    _remove(retired)
    base = base_of(predecessor.base).name if config.lora is not None else None
    checkpoint = _keep(trainer, checkpoints, parent=predecessor.digest, base=base, durable=False)
    _held = checkpoint.name
    release_gpu_memory()
    return Updated(checkpoint, metrics)


def logprobs(predecessor: Predecessor, config: TrainerConfig, rollouts: Sequence[Rollout]) -> list[list[float]]:
    """Return the log-probability of every token of every rollout, in nats, under the policy that `update` would train.

    The trainer is loaded where needed, and kept for that update. Raises StateError as `update` does.
    """
    return _trainer_at(predecessor, config).logprobs(rollouts)


def _trainer_at(predecessor: Predecessor, config: TrainerConfig) -> "Trainer":
    """Return the trainer at the predecessor; load it unless it is the one in memory."""
    global _trainer, _held
    from models.trainer import Trainer

    # a new block begins with a new optimizer, even where the trainer holds the same weights; and `logprobs` may have
    # loaded the trainer with another configuration
    elsewhere = _held != predecessor.digest or _trainer is None or _trainer.checkpoint != predecessor.base
    if _trainer is None or elsewhere or _trainer.config != config:
        _let_go()  # memory is short for two
        _trainer = Trainer.load(
            predecessor.base, config, predecessor.state, predecessor.base, checkpoint_digest=predecessor.digest
        )
        _held = predecessor.digest
    return _trainer


def teacher_logprobs(teacher: Path, config: TrainerConfig, rollouts: Sequence[Rollout]) -> list[list[float]]:
    """Return a teacher's log-probability of every token. It is loaded for this call, beside the trainer."""
    from models.lessons.on_policy_distillation import teacher_logprobs as scored

    try:
        return scored(teacher, config, rollouts)
    finally:
        gc.collect()  # model and layers are in reference cycles
        release_gpu_memory()


def logprobs_of(checkpoint: Path, config: TrainerConfig, rollouts: Sequence[Rollout]) -> list[list[float]]:
    """Return a checkpoint's log-probability of every token. It is loaded for this call; the trainer is released."""
    _let_go()
    return teacher_logprobs(checkpoint, config, rollouts)


def save_state(digest: str, state: Path, retired: Sequence[Path] = ()) -> None:
    """Write the trainer's state into a folder. Raises ElsewhereError where the trainer does not hold `digest`.

    `retired` states are removed right before.
    """
    if _trainer is None or _held != digest:
        raise ElsewhereError(f"the trainer does not hold {digest}: its process was restarted after the update")
    _remove(retired)
    _trainer.save_state(state, digest)


def _let_go() -> None:
    """Release the trainer's memory at once; its reference cycles need the garbage collector."""
    global _trainer, _held
    _trainer, _held = None, None
    gc.collect()
    release_gpu_memory()


def _remove(retired: Sequence[Path]) -> None:
    """Remove folders right before others of their size are written.

    The page cache then reuses their memory: on a virtual machine memory never used before is several times slower.
    """
    for folder in retired:
        shutil.rmtree(folder, ignore_errors=True)


def merge(adapter: Path, checkpoints: Path, trust_remote_code: bool) -> Path:
    """Merge an adapter into its base. Returns the full checkpoint; raises MergeError where the merge is not proven."""
    from models.hf import merging

    _let_go()  # its memory is needed
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
    """Keep the trainer's weights as a checkpoint; given the digest of a `base`, only its adapters.

    `lessons`: what it has learned besides what the checkpoint had that the trainer began with.
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
