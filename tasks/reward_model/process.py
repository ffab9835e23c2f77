"""What the trainer's process does with reward models: fit one, and score answers with one that stays loaded."""

import gc
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import TrainerConfig
from conf.storage.durable import room_for, size_of
from models.hf.checkpoint import keep, new_draft, write_learned, write_lineage
from models.hf.hardware import release_gpu_memory
from models.lessons.preference_data import Pick
from models.lessons.ranking import Ranking, rank
from tasks.training import trainer_process

if TYPE_CHECKING:  # imports torch, which only the trainer's process needs
    from models.reward_model import RewardModel


def run_fit(
    champion: Path,
    picks: Sequence[Pick],
    lessons: Sequence[str],
    held_out: Sequence[Pick],
    trainer: TrainerConfig,
    checkpoints: Path,
) -> tuple[Ranking, str | None]:
    """Fit a reward model, evaluate it on held-out picks, and keep it if it may serve.

    Returns how it ranks the held-out picks, and its checkpoint's digest (None if it may not serve). `lessons`: the
    picks' names in the journal. The fitted model is saved and loaded again before it is evaluated, so that the model
    that serves is exactly the one that was evaluated.
    """
    from models.reward_model import RewardModel, fit

    trainer_process._let_go()
    release()  # memory suffices for only one model
    draft = new_draft(checkpoints)
    with room_for(draft, size_of(champion)):
        fit(champion, picks, trainer).save(draft)
        gc.collect()  # the model's objects form reference cycles
        rewards = RewardModel.load(draft, trainer).judge([(pick.prompt, pick.answers) for pick in held_out])
        ranking = rank(rewards, held_out)
        write_lineage(draft, champion.name)
        write_learned(draft, lessons)
        digest = keep(draft, checkpoints).name if ranking.refusal is None else None
    shutil.rmtree(draft, ignore_errors=True)
    release()
    return ranking, digest


def score_answers(
    checkpoint: Path, groups: Sequence[tuple[list[int], list[list[int]]]], config: TrainerConfig
) -> list[list[float]]:
    """Return a saved reward model's rewards for groups of answers. A group is a prompt and its answers, as token ids.

    The model stays loaded between calls, unless the engine needs its GPU. The same arguments give the same rewards.
    """
    model = _loaded(checkpoint, config)
    rewards = model.judge(groups)
    if model.device.type == "cuda":
        del model
        release()
    return rewards


@lru_cache(maxsize=1)
def _loaded(checkpoint: Path, config: TrainerConfig) -> "RewardModel":
    from models.reward_model import RewardModel

    return RewardModel.load(checkpoint, config)


def release() -> None:
    """Unload the reward model and free its memory. Its objects form reference cycles, which only `gc` can free."""
    _loaded.cache_clear()
    gc.collect()
    release_gpu_memory()
