"""The reward model: fitted to the owner's picks, it serves if it proves itself on held-out ones."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conf.schema import StudentConfig, TrainerConfig
from conf.sections.lessons import RewardModelConfig
from models.hf.checkpoint import base_of, learned
from models.hf.loading import load_tokenizer
from tasks.journal.tables import HELD_OUT
from tasks.reward_model import process
from tasks.reward_model.preferences import DayPicks, choices, day_picks
from tasks.reward_model.process import Fitted
from tasks.stage import Artifact, stage
from tasks.tables import write_table
from tasks.workers.worker import HoursOverError, Worker

UNUSED = (
    "the configuration uses none (preference_learning: direct, or learned_reward: {owner_share: 0, tie_breaker: 0})"
)


class UnfitError(Exception):
    """No reward model is fitted tonight; the message says why, as half a sentence."""


@stage(retries=2, resources=("trainer", "checkpoints"))
def fit_reward_model(
    folder: Path,
    *,
    day: Artifact,
    date: str,
    checkpoint: Path,
    config: RewardModelConfig | None,
    trainer_config: TrainerConfig,
    student: StudentConfig,
    seed: int,
    exam_questions: tuple[str, ...],
    broke: str | None,
    earlier: Path | None,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Fit a reward model on the backbone of `checkpoint`, the champion, and write whether it serves to `outcome.json`.

    `config` None: no reward model is wanted. Whatever is wrong with the picks is a refusal with its reason: the night
    continues without a reward model. `broke`: how earlier attempts failed; there is no further one
    then. `earlier`: the last night's reward model; the fit continues it where it has the champion's shape and was
    fitted to nothing that judges it tonight. `checkpoint.txt` exists only if the reward model serves.
    """
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    picks = day_picks(choices(day.folder), date, tokenizer, student, exam_questions)
    held_out = picks.held_out_choices if config else []  # without a reward model all picks are lessons
    write_table(folder / "held_out.parquet", HELD_OUT, [choice.row for choice in held_out])
    outcome: dict[str, Any] = {
        "picks": len(picks),
        "held_out": len(held_out),
        "left_out": dict(picks.left_out),
        "broke": broke,
        "continues": None,
    }
    try:
        config = _check(config, picks)
        if broke is not None:
            raise UnfitError(f"it could not be fitted: {broke}")
        if earlier is not None and not _may_go_on(earlier, base_of(checkpoint), picks):
            earlier = None
        outcome["continues"] = earlier and earlier.name
        fitted = trainer.call(
            process.fit_reward_model,
            checkpoint,
            picks.fitted,
            picks.lessons,
            picks.held_out,
            config,
            trainer_config,
            seed,
            checkpoints,
            earlier,
        )
    except (UnfitError, HoursOverError) as refusal:
        outcome = {"serves": False, "reason": str(refusal), "checkpoint": None} | outcome
    else:
        outcome = _outcome(fitted) | outcome
        (folder / "curve.json").write_text(json.dumps(fitted.steps))
        if fitted.checkpoint is not None:
            (folder / "checkpoint.txt").write_text(fitted.checkpoint.name)
    (folder / "outcome.json").write_text(json.dumps(outcome))


def _may_go_on(earlier: Path, backbone: Path, picks: DayPicks) -> bool:
    """Whether a fit may continue an earlier reward model, by its shape and by the picks that it was fitted to."""
    fitted, judges = learned(earlier), {choice.lesson for choice in picks.held_out_choices}
    return bool(fitted) and fitted.isdisjoint(judges) and have_same_shape(earlier, backbone)


def have_same_shape(one: Path, other: Path) -> bool:
    """Whether two models have the same architecture and sizes, by the numbers of their configurations."""
    shapes = []
    for folder in (one, other):
        settings = json.loads((folder / "config.json").read_text())
        shapes.append({key: value for key, value in settings.items() if key == "model_type" or type(value) is int})
    return shapes[0] == shapes[1]


def figures(outcome: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of an outcome for MLflow, by name."""
    values = {name: float(outcome[name]) for name in ("serves", "picks", "held_out")}
    if "accuracy" in outcome:
        values |= {name: outcome["accuracy"][key] for name, key in (("accuracy", "value"), ("low", "low"))}
        values |= {name: outcome[name] for name in ("chance", "expected_calibration_error")}
        values |= {f"length_{name}": outcome["length"][name] for name in ("longest_alone", "longest_top")}
    return {f"reward_model/{name}": value for name, value in values.items()}


def _outcome(fitted: Fitted) -> dict[str, Any]:
    checkpoint = None if fitted.checkpoint is None else fitted.checkpoint.name
    verdict = {"serves": checkpoint is not None, "reason": fitted.ranking.refusal, "checkpoint": checkpoint}
    return verdict | asdict(fitted.ranking)


def _check(config: RewardModelConfig | None, picks: DayPicks) -> RewardModelConfig:
    """Return the configuration; raise UnfitError where no reward model is wanted or the picks do not suffice."""
    if config is None:
        raise UnfitError(UNUSED)
    if len(picks) + picks.left_out["older"] < config.min_picks:
        raise UnfitError(f"with fewer than {config.min_picks} usable picks none is fitted")
    if not picks.fitted or not picks.held_out:
        raise UnfitError("all picks are on one side of the split by prompt: more different prompts are needed")
    return config
