"""The night's reward model: what MLflow keeps of it, and a fit that fails."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import SUMMARY, Home
from flows.run.context import Night
from flows.training.inputs import reward_model_of
from models.hf.checkpoint import is_intact, keep
from tasks.journal.tables import CORRECTIONS, PREFERENCES
from tasks.monitoring.tracking import Tracking
from tasks.reward_model.fit import figures
from tasks.stage import Artifact, commit
from tasks.training import trainer_process
from tests.models.support.tiny import write_tiny
from tests.models.support.tiny_picks import QUICK
from tests.tasks.doubles.journals import DAYS
from tests.tasks.doubles.picks import preference_rows
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import FailingWorker, InProcessWorker

SETTINGS = [f"reward_model={QUICK.model_dump_json()}"]


@pytest.fixture
def home(home_with_mlflow: Callable[[str], Home]) -> Iterator[Home]:
    yield home_with_mlflow("school")
    trainer_process._let_go()


def fitted(home: Home, picks: int, trainer: InProcessWorker | None = None) -> tuple[Artifact, Any, Path]:
    """Return the stage, MLflow's data of the run, and the outcome that it keeps as an artifact."""
    night = Night(home, "2026-11-20", load_night(STARTER, SETTINGS))
    night.trainer = trainer or InProcessWorker()
    night.folder.mkdir(parents=True, exist_ok=True)
    tracking = Tracking(home, night.config)
    tracking.open_run(night.folder, night.config, {})
    tables = {"preferences": (PREFERENCES, preference_rows(picks)), "corrections": (CORRECTIONS, [])}
    day = write_stage(night.folder / "freeze_journal", tables)

    @flow
    def fit() -> Artifact:
        return reward_model_of(night, day, write_tiny(home.root / "champion"), tracking, ())

    artifact = fit()
    (kept,) = (home.root / "mlartifacts").rglob("reward_model/outcome.json")
    return artifact, tracking.client.get_run(tracking.run_id).data, kept


def test_mlflow_names_the_reward_model_that_served(home: Home, prefect_server: None) -> None:
    artifact, run, kept = fitted(home, 100)
    outcome = artifact.read_json("outcome.json")
    assert outcome["serves"]
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


def given_to_the_fit(night: Night, champion: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the arguments of the stage, which does not run."""
    given: list[dict[str, Any]] = []

    def run(stage: Any, path: str, **arguments: Any) -> Any:
        stage._inputs(arguments)  # every input has a digest
        given.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(night, "run", run)
    day = write_stage(night.folder / "freeze_journal", {})
    with pytest.raises(KeyboardInterrupt):
        reward_model_of(night, day, champion, None, ())
    return given[0]


@pytest.mark.parametrize(
    ("setting", "serves", "goes_on"),
    [("seed=2", True, True), ("seed=2", False, False), ("student.system=another", True, False)],
)
def test_the_fit_goes_on_from_the_last_nights_reward_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, serves: bool, goes_on: bool
) -> None:
    home = Home(tmp_path)
    kept = keep(write_tiny(home.checkpoints / "draft"), home.checkpoints)
    before = home.night(DAYS[0])
    before.mkdir(parents=True)
    (before / "config.yaml").write_text(frozen_yaml(load_night(STARTER)))
    (before / SUMMARY).write_text("{}")
    (before / "fit_reward_model").mkdir()
    (before / "fit_reward_model" / "outcome.json").write_text(json.dumps({"serves": serves}))
    (before / "fit_reward_model" / "checkpoint.txt").write_text(kept.name)
    commit(before / "fit_reward_model", "fit_reward_model", {}, 1.0)
    night = Night(home, DAYS[1], load_night(STARTER, [setting]))
    earlier = given_to_the_fit(night, home.checkpoints / "original", monkeypatch)["earlier"]
    assert earlier == (kept if goes_on else None)
