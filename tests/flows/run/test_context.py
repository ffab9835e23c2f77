"""A night's identity, its folders, and the checkpoints that it goes on from."""

import os
import shutil
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError, NightError
from flows.run.context import Night, check_identity, freeze_config
from flows.run.history import first_start, resume_command
from flows.training.inputs import champion_of
from models.hf.checkpoint import DamagedCheckpointError, keep
from tasks.stage import Artifact, stage
from tasks.workers import engine_process
from tasks.workers.worker import WorkerDiedError
from tests.refusal import refusal
from tests.tasks.doubles.workers import FailingWorker


def starter(*overrides: str) -> NightConfig:
    return load_night(STARTER, overrides)


def test_the_configuration_is_frozen_once(tmp_path: Path) -> None:
    folder = tmp_path / "2026-11-20"
    check_identity(folder, starter())
    assert not folder.exists()
    freeze_config(folder, starter("grpo.rounds=3"), fresh=False)
    frozen = (folder / "config.yaml").read_text()
    assert load_night(folder / "config.yaml") == starter("grpo.rounds=3")
    moved = starter("grpo.rounds=3", "tracking.tracking_uri=http://here:5000")  # URLs do not make it another night
    freeze_config(folder, moved, fresh=False)
    assert (folder / "config.yaml").read_text() == frozen


def test_another_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    folder = tmp_path / "2026-11-20"
    freeze_config(folder, starter("grpo.rounds=3"), fresh=False)
    assert refusal(check_identity, folder, starter("grpo.rounds=4", "seed=9")) == (
        "the night 2026-11-20 was begun with another configuration (seed: 1 → 9; grpo.rounds: 3 → 4): "
        f"resume it with `{resume_command(folder)}`, name another --date, or start it over with --fresh"
    )
    with pytest.raises(InputError, match="^2026-11-20 already has a night of 'starter'; use an earlier --date"):
        check_identity(folder, starter("name=roman"))
    with pytest.raises(InputError):
        freeze_config(folder, starter("grpo.rounds=4"), fresh=False)
    assert load_night(folder / "config.yaml") == starter("grpo.rounds=3")


def test_fresh_begins_the_night_anew(tmp_path: Path) -> None:
    folder = tmp_path / "2026-11-20"
    freeze_config(folder, starter("grpo.rounds=3"), fresh=False)
    (folder / "distill").mkdir()
    freeze_config(folder, starter("grpo.rounds=4"), fresh=True)
    assert {file.name for file in folder.iterdir()} == {"config.yaml", "started.json"}
    assert load_night(folder / "config.yaml") == starter("grpo.rounds=4")
    freeze_config(tmp_path / "2026-11-21", starter(), fresh=True)


def test_a_frozen_configuration_that_was_damaged_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: [")
    with pytest.raises(InputError, match="config.yaml: .*not valid YAML"):
        check_identity(tmp_path, starter())


def test_a_note_that_names_no_checkpoint_is_refused(tmp_path: Path) -> None:
    night = Night(Home(tmp_path), "2026-11-20", starter())
    (tmp_path / "checkpoint.txt").write_text("../../elsewhere")
    with pytest.raises(NightError, match="checkpoints: .* is not a valid name here"):
        night.checkpoint(Artifact(folder=tmp_path, digest=""))
    night.close()


def test_a_night_half_removed_by_fresh_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of --fresh."""
    folder = tmp_path / "2026-11-20"
    freeze_config(folder, starter(), fresh=False)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            freeze_config(folder, starter(), fresh=True)
    assert not folder.exists()  # neither a summary nor a promotion counts
    freeze_config(folder, starter(), fresh=False)
    assert [file.name for file in tmp_path.iterdir()] == ["2026-11-20"]


def test_the_hours_count_from_the_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever resumes the night: the command or a worker. Only --fresh begins anew."""
    home, clock = Home(tmp_path), [1e9]
    folder = home.night("2026-11-20")
    monkeypatch.setattr(time, "time", lambda: clock[0])
    config = starter("budget_minutes=90")
    for seconds, fresh, began in ((0, False, 0), (3000, False, 0), (4000, True, 4000), (9000, False, 4000)):
        clock[0] = 1e9 + seconds
        freeze_config(folder, config, fresh=fresh)
        assert first_start(folder) == 1e9 + began
        assert Night(home, "2026-11-20", config).hours.end == 1e9 + began + 5400
    assert first_start(home.night("2026-11-19")) is None


def test_an_engine_that_cannot_be_put_to_sleep_in_time_does_not_end_the_night(tmp_path: Path) -> None:
    """If the hours end in a lesson, the fit of the reward model puts the engine to sleep. The exam must still come."""
    night = Night(Home(tmp_path), "2026-11-20", starter("budget_minutes=90"))
    night.engine.call(os.getpid)
    night.engine.until = 0.0
    assert night.engine.running
    night.sleep_engine()
    night.close(grace=0)


@pytest.mark.usefixtures("prefect_server")
def test_a_stage_gets_what_the_nights_stages_share_unless_it_is_given_another(tmp_path: Path) -> None:
    night, given = Night(Home(tmp_path), "2026-11-20", starter()), list[Any]()
    night.exam_questions = ("2 + 2?",)

    @stage(resources=("engine",))
    def noted(folder: Path, *, date: str, student: Any, exam_questions: Any, engine: Any) -> None:
        given.extend((date, student, exam_questions, engine))

    night.run(noted, "noted", date="2026-11-19")
    assert given == ["2026-11-19", night.config.student, ("2 + 2?",), night.engine]
    assert night.committed(noted, "noted", date="2026-11-19")
    assert not night.committed(noted, "noted")
    night.close()


@pytest.mark.usefixtures("prefect_server")
def test_the_engine_sleeps_before_a_stage_with_a_trainer(tmp_path: Path) -> None:
    night = Night(Home(tmp_path), "2026-11-20", starter())
    engine: Any = FailingWorker(WorkerDiedError("out of memory"))
    engine.running = True
    night.engine = engine

    @stage()
    def written(folder: Path) -> None: ...

    @stage(resources=("trainer",))
    def trained(folder: Path, *, trainer: Any) -> None: ...

    night.run(written, "written")
    assert not engine.functions
    night.run(trained, "trained")
    assert engine.functions == [engine_process.sleep]


# --- damaged checkpoints


@stage()
def distill(folder: Path, *, checkpoints: Path) -> None:
    """Make a checkpoint, always the same."""
    draft = checkpoints / "draft"
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_text("weights")
    (folder / "checkpoint.txt").write_text(keep(draft, checkpoints).name)


@pytest.mark.usefixtures("prefect_server")
def test_a_night_does_not_go_on_from_a_damaged_checkpoint(tmp_path: Path) -> None:
    night = Night(Home(tmp_path), "2026-11-20", starter())
    checkpoint = night.make_checkpoint(distill, "distill")
    assert night.make_checkpoint(distill, "distill") == checkpoint
    for damage in (lambda: (checkpoint / "model.safetensors").write_text("wejghts"), lambda: shutil.rmtree(checkpoint)):
        damage()
        with pytest.raises(DamagedCheckpointError, match=f"{checkpoint}: .* start it over with --fresh"):
            night.make_checkpoint(distill, "distill")


def test_a_damaged_champion_is_refused_with_what_to_do(tmp_path: Path) -> None:
    night = Night(Home(tmp_path), "2026-11-20", starter())
    night.home.checkpoints.mkdir()
    champion = night.home.checkpoints / ("cafe42" * 4)
    night.folder.mkdir(parents=True)
    (night.folder / "champion.txt").write_text(champion.name)
    nobody: Any = None  # the registry is not asked: the night knows its champion
    for what, damage in (("this checkpoint is gone", lambda: None), ("it was changed or damaged", champion.mkdir)):
        damage()
        with pytest.raises(DamagedCheckpointError, match=f"{champion}: .*{what}; .*`nightschool rollback .*--fresh"):
            champion_of(night, nobody)
