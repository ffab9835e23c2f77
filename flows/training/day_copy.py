"""The owner's day copy among the night's models: it sits the exam, and the night may begin with it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.evaluation.run import evaluate_for_report
from flows.run.context import Night, log
from flows.teaching.anchors import known_anchors
from flows.training.reward_model import rank_held_out
from models.checkpoint import MergeError
from tasks.evaluation.choose_start import choose_start
from tasks.stage import Artifact, committed
from tasks.teaching.replay_day import DAY, lessons_of_day, replay_day
from tasks.training.update import merge
from tasks.workers import HoursOverError, WorkerDiedError


@dataclass(frozen=True)
class DayCopy:
    """The champion with the day's lessons, as a checkpoint; `checkpoint` is None where the merge failed.

    `learnt`: where the lessons that it learnt are in the journal (`file:line`). `refused`: why there is none.
    """

    checkpoint: Path | None
    learnt: tuple[str, ...] = ()
    refused: str = ""
    exam: Artifact | None = None
    picks: dict[str, Artifact] = field(default_factory=dict)


def day_copy_of(night: Night, champion: Path, journal: Artifact, reward_model: Artifact) -> DayCopy | None:
    """Make the owner's day copy, let it sit the exam and rank the held-out picks; None where nothing was learnt by day.

    No night fails for it: where time is short or a child process dies, exam and ranking are left out.
    """
    config, home, known = night.config, night.home, committed(night.folder / "replay_day")
    if known is None and not lessons_of_day(champion, config, home.journal, home.nights):
        return None
    night.rest_engine()
    try:
        replayed = night.run(
            replay_day,
            "replay_day",
            day=journal,
            champion=champion,
            config=config,
            teach=config.teach,
            anchors=known_anchors(home, champion),
            journal=home.journal,
            nights=home.nights,
            checkpoints=home.checkpoints,
            trainer=night.trainer,
        )
        adapter = night.checkpoint(replayed)
        if adapter == champion:
            return None
        trust: dict[str, Any] = {"trust_remote_code": config.student.trust_remote_code}
        day = night.make_checkpoint(
            merge, "merge_day", adapter=adapter, checkpoints=home.checkpoints, trainer=night.trainer, **trust
        )
    except MergeError as error:
        return DayCopy(None, refused=str(error))
    except (HoursOverError, WorkerDiedError) as error:
        log.warning("there is no day copy tonight: %s", error)
        return None
    evaluate_for_report(night, "evaluate/day", day)
    exam = committed(night.folder / "evaluate" / "day")
    picks = rank_held_out(night, reward_model, "day", day)
    return DayCopy(day, tuple(replayed.read_json(DAY)["sources"]), "", exam, picks)


def begin_with(
    night: Night, champion: Path, exam: Artifact, champion_picks: Artifact | None, day: DayCopy | None
) -> tuple[Path, tuple[str, ...]]:
    """Return the checkpoint that the night's lessons begin with, and the journal's lines that it has learnt by day."""
    if day is None or night.config.start_from == "champion":
        return champion, ()
    chosen = night.run(
        choose_start,
        "choose_start",
        champion=exam,
        day=day.exam,
        champion_picks=champion_picks,
        day_picks=day.picks.get("day"),
        exam=night.config.exam,
        seed=night.config.seed,
        refused=day.refused,
    )
    if day.checkpoint is not None and chosen.read_json("start.json")["day"]:
        return day.checkpoint, day.learnt
    return champion, ()
