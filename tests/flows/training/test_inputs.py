"""The night's reward model: what MLflow keeps of it, and a fit that fails."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.inputs import reward_model_of
from models.hf.checkpoint import is_intact
from tasks.journal.tables import CORRECTIONS, PREFERENCES
from tasks.monitoring.tracking import Tracking
from tasks.reward_model.fit import figures
from tasks.stage import Artifact
from tasks.training import trainer_process
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.picks import preference_rows
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import FailingWorker, InProcessWorker


@pytest.fixture
def home(home_with_mlflow: Callable[[str], Home]) -> Iterator[Home]:
    yield home_with_mlflow("school")
    trainer_process._let_go()


def fitted(home: Home, picks: int, trainer: InProcessWorker | None = None) -> tuple[Artifact, Any, Path]:
    """Return the stage, MLflow's data of the run, and the outcome that it keeps as an artifact."""
    night = Night(home, "2026-11-20", load_night(STARTER, ["preference_learning=both"]))
    night.trainer, night.exam_questions = trainer or InProcessWorker(), ()
    night.folder.mkdir(parents=True, exist_ok=True)
    tracking = Tracking(home, night.config)
    tracking.open_run(night.folder, night.config, {})
    tables = {"preferences": (PREFERENCES, preference_rows(picks)), "corrections": (CORRECTIONS, [])}
    day = write_stage(night.folder / "freeze_journal", tables)

    @flow
    def fit() -> Artifact:
        return reward_model_of(night, day, write_tiny(home.root / "champion"), tracking)

    artifact = fit()
    (kept,) = (home.root / "mlartifacts").rglob("reward_model/outcome.json")
    return artifact, tracking.client.get_run(tracking.run_id).data, kept


def test_mlflow_names_the_reward_model_that_served(home: Home, prefect_server: None) -> None:
    artifact, run, kept = fitted(home, 100)
    outcome = artifact.read_json("outcome.json")
    assert (outcome["serves"], outcome["reason"], outcome["picks"]) == (True, None, 100)
    assert json.loads(kept.read_text()) == outcome
    assert run.tags["reward_model"] == outcome["checkpoint"]
    assert is_intact(home.checkpoints / run.tags["reward_model"])
    assert {name: value for name, value in run.metrics.items() if name.startswith("reward_model/")} == figures(outcome)


def test_a_fit_that_fails_costs_no_night_and_stays_a_refusal(home: Home, prefect_server: None) -> None:
    broken = FailingWorker(RuntimeError("not enough\nmemory"))
    artifact, _, kept = fitted(home, 40, broken)
    outcome = artifact.read_json("outcome.json")
    assert (outcome["serves"], outcome["reason"]) == (False, "it could not be fitted: RuntimeError: not enough memory")
    assert json.loads(kept.read_text()) == outcome
    assert len(broken.functions) == 1
    shutil.rmtree(home.night("2026-11-20") / "freeze_journal")  # it is written again
    again, _, _ = fitted(home, 40)
    assert again.digest == artifact.digest
