"""Fit the reward model to the owner's picks. The model serves only if it ranks held-out picks better than chance."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conf.schema import StudentConfig, TrainerConfig
from conf.sections.lessons import RewardModelConfig
from tasks.journal.tables import HELD_OUT
from tasks.reward_model import process
from tasks.reward_model.preferences import LONGEST, TABLES, DayPicks, day_picks
from tasks.stage import Artifact, stage
from tasks.tables import read_table, write_table
from tasks.training.examples import ExampleReader
from tasks.workers.worker import HoursOverError, Worker


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
    exam_questions: tuple[str, ...],
    broke: str | None,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Fit a reward model on the champion's layers (`checkpoint`). Write to `outcome.json` whether the model serves.

    `config`: None if the night uses no reward model; the outcome's reason is then empty. If the picks do not suffice or
    time runs out, it says so, and the night continues without a reward model. `broke`: how an earlier attempt failed;
    if set, no further attempt is made. `checkpoint.txt` names the model if it serves.
    """
    tables = {name: read_table(day.folder / f"{name}.parquet", schema) for name, schema in TABLES.items()}
    picks = day_picks(tables, date, ExampleReader(checkpoint, student, exam_questions, LONGEST))
    write_table(folder / "held_out.parquet", HELD_OUT, picks.held_out_rows)
    outcome: dict[str, Any] = {"picks": len(picks), "held_out": len(picks.held_out), "left_out": picks.left_out}
    outcome |= {"broke": broke, "serves": False, "reason": _refusal(config, picks, broke), "checkpoint": None}
    if outcome["reason"] is None:
        inputs = (checkpoint, picks.fitted, picks.lessons, picks.held_out, trainer_config, checkpoints)
        try:
            ranking, kept = trainer.call(process.run_fit, *inputs)
        except HoursOverError as error:
            outcome["reason"] = str(error)
        else:
            outcome |= {"serves": kept is not None, "reason": ranking.refusal, "checkpoint": kept} | asdict(ranking)
            if kept is not None:
                (folder / "checkpoint.txt").write_text(kept)
    (folder / "outcome.json").write_text(json.dumps(outcome))


def figures(outcome: dict[str, Any]) -> dict[str, float]:
    """Return the outcome of a fit as MLflow metrics, as a dict from name (`reward_model/serves`) to value."""
    values = {name: float(outcome[name]) for name in ("serves", "picks", "held_out")}
    if "accuracy" in outcome:
        values |= {"accuracy": outcome["accuracy"]["value"], "low": outcome["accuracy"]["low"]}
        values["chance"] = outcome["chance"]
        values |= {f"length_{name}": outcome["length"][name] for name in ("longest_alone", "longest_top")}
    return {f"reward_model/{name}": value for name, value in values.items()}


def _refusal(config: RewardModelConfig | None, picks: DayPicks, broke: str | None) -> str | None:
    """Return why no reward model is fitted tonight, as a sentence fragment ("": none is wanted), or None if one is."""
    if config is None:
        return ""
    if len(picks) + picks.left_out["older"] < config.min_picks:
        return f"with fewer than {config.min_picks} usable picks none is fitted"
    if not picks.fitted or not picks.held_out:
        return "all picks are on one side of the split by prompt: more different prompts are needed"
    return None if broke is None else f"it could not be fitted: {broke}"
