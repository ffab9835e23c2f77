"""What MLflow keeps of the night's reward model: its figures, the whole outcome, and which one it was."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.home import Home
from conf.load import STARTER, load_night
from flows.day import reward_model_of
from flows.night import Night
from models.checkpoint import is_whole
from tasks import learner
from tasks.fit_reward_model import figures
from tasks.stage import Artifact
from tasks.tables import CORRECTIONS, PREFERENCES
from tasks.tracking import Tracking
from tests.models.tiny import write_tiny
from tests.models.tiny_picks import QUICK
from tests.tasks.committed_tables import write_stage
from tests.tasks.test_fit_reward_model import OwnProcess, preferences

SETTINGS = [f"reward_model={QUICK.model_dump_json()}"]


@pytest.fixture
def home(home_with_mlflow: Callable[[str], Home]) -> Iterator[Home]:
    yield home_with_mlflow("school")
    learner._let_go()


def fitted(home: Home, picks: int) -> tuple[Artifact, Any, Path]:
    """The stage, what MLflow has of its night, and the outcome that it keeps."""
    night = Night(home, "2026-11-20", load_night(STARTER, SETTINGS))
    night.engine.end()
    night.trainer.end()
    night.trainer = OwnProcess()  # pyright: ignore
    night.folder.mkdir(parents=True)
    tracking = Tracking(home, night.config)
    tracking.open_run(night.folder, night.config, {})
    tables = {"preferences": (PREFERENCES, preferences(picks)), "corrections": (CORRECTIONS, [])}
    day = write_stage(night.folder / "freeze_journal", tables)

    @flow
    def fit() -> Artifact:
        return reward_model_of(night, day, write_tiny(home.root / "champion"), tracking, ())

    artifact = fit()
    (kept,) = (home.root / "mlartifacts").rglob("reward_model/outcome.json")
    return artifact, tracking.client.get_run(tracking.run_id).data, kept


def test_mlflow_tells_which_reward_model_served(home: Home, prefect_server: Path) -> None:
    artifact, run, kept = fitted(home, 160)
    outcome = artifact.read_json("outcome.json")
    assert outcome["serves"]
    assert json.loads(kept.read_text()) == outcome
    assert run.tags["reward_model"] == outcome["checkpoint"]
    assert is_whole(home.checkpoints / run.tags["reward_model"])
    assert {name: value for name, value in run.metrics.items() if name.startswith("reward_model/")} == figures(outcome)


def test_of_a_refusal_it_keeps_the_reason(home: Home, prefect_server: Path) -> None:
    _, run, kept = fitted(home, 20)
    assert json.loads(kept.read_text())["reason"] == "with fewer than 30 usable picks none is fitted"
    assert run.metrics["reward_model/serves"] == 0
    assert "reward_model" not in run.tags
