"""The registry on a real MLflow database: versions, aliases, promotion, rollback, and the folder behind an alias."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import mlflow
import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from models.checkpoint import keep, verify, write_lineage
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, Registry, Version
from tasks.tracking import Tracking
from tests.models.tiny import plain_model, write_tiny


class School:
    """A home with a night's run in MLflow, three checkpoints, and their registry."""

    def __init__(self, home: Home) -> None:
        config = load_night(STARTER)
        self.tracking = Tracking(home, config)
        night = home.night("2026-11-20")
        night.mkdir(parents=True)
        self.tracking.open_run(night, config, {})
        self.registry = Registry(self.tracking.client, "student")
        self.checkpoints = [make_checkpoint(home.checkpoints, text) for text in ("one", "two", "three")]

    def register(self, number: int, role: str = "candidate", accuracy: float = 0.5) -> Version:
        tags = {"role": role, "night": "2026-11-20", "parent": "cafe42", "accuracy": f"{accuracy:.4f}"}
        return self.registry.register(
            self.checkpoints[number],
            self.tracking.run_id,
            self.tracking.experiment_id,
            tags,
            {"exam/arithmetic-1-2": accuracy},
        )

    def aliases(self) -> tuple[str | None, str | None]:
        """The versions behind `daytime` and `previous`."""
        found = [self.registry.named(alias) for alias in (DAYTIME, PREVIOUS)]
        return found[0] and found[0].version, found[1] and found[1].version


def make_checkpoint(checkpoints: Path, text: str, parent: str | None = None) -> Path:
    draft = checkpoints / "draft"
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_text(text)
    write_lineage(draft, parent)
    return keep(draft, checkpoints)


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home]) -> School:
    return School(home_with_mlflow("school with spaces and ü"))


def test_an_empty_registry(school: School) -> None:
    assert school.registry.versions() == []
    assert school.aliases() == (None, None)
    assert school.registry.rollback() is None


def test_three_checkpoints_become_three_versions(school: School) -> None:
    for number, role in enumerate(("champion", "distilled", "candidate")):
        version = school.register(number, role, accuracy=0.1 * number)
        assert version.version == str(number + 1)
    versions = school.registry.versions()
    assert [version.digest for version in versions] == [checkpoint.name for checkpoint in school.checkpoints]
    assert [version.role for version in versions] == ["champion", "distilled", "candidate"]
    assert (versions[2].parent, versions[2].night, versions[2].accuracy) == ("cafe42", "2026-11-20", 0.2)
    assert not any(version.promoted or version.aliases for version in versions)


def test_the_same_content_is_registered_once(school: School) -> None:
    first = school.register(0, "candidate", 0.25)
    again = school.register(0, "champion", 0.75)
    assert again == first
    assert len(school.registry.versions()) == 1
    assert len(school.tracking.client.search_logged_models([school.tracking.experiment_id])) == 1


def test_a_version_shows_its_exam_in_mlflow(school: School) -> None:
    school.register(0, "candidate", 0.25)
    (model,) = school.tracking.client.search_logged_models([school.tracking.experiment_id])
    assert model.name == f"candidate-{school.checkpoints[0].name[:8]}"
    assert {(metric.key, metric.value) for metric in model.metrics or []} == {("exam/arithmetic-1-2", 0.25)}
    assert str(model.status) in ("READY", "LoggedModelStatus.READY")
    version = school.tracking.client.get_model_version("student", "1")
    assert version.run_id == school.tracking.run_id


def test_promotion_moves_the_aliases_and_twice_changes_nothing(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    assert school.aliases() == (one.version, None)
    school.registry.promote(two.version)
    assert school.aliases() == (two.version, one.version)
    versions = school.registry.versions()
    school.registry.promote(two.version)
    assert school.registry.versions() == versions
    assert [version.promoted for version in versions] == [True, True]


def test_a_promotion_that_was_killed_between_its_two_moves_is_made_good(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    school.tracking.client.set_registered_model_alias("student", PREVIOUS, one.version)
    assert school.aliases() == (one.version, one.version)
    school.registry.promote(two.version)
    assert school.aliases() == (two.version, one.version)


def test_rollback_goes_back_and_a_second_one_undoes_it(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    assert school.registry.rollback() is None
    school.registry.promote(two.version)
    before = school.registry.rollback()
    assert before is not None
    assert before.version == one.version
    assert school.aliases() == (one.version, two.version)
    school.registry.rollback()
    assert school.aliases() == (two.version, one.version)


def test_every_move_of_who_serves_is_kept_with_its_time_and_by_whose_doing(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version, "night 2026-11-20")
    school.registry.promote(two.version, "night 2026-11-20")
    school.registry.promote(two.version)  # no move
    school.registry.rollback()
    school.registry.promote(two.version)
    moves = school.registry.moves()
    assert [(move.version, move.by, move.by_hand) for move in moves] == [
        ("1", "night 2026-11-20", False),
        ("2", "night 2026-11-20", False),
        ("1", "rollback", True),
        ("2", "promote", True),
    ]
    times = [datetime.fromisoformat(move.at) for move in moves]
    assert times == sorted(times)
    assert all(abs(datetime.now(UTC) - at) < timedelta(minutes=10) for at in times)


def test_the_alias_leads_to_the_very_folder(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    school.register(0)
    two = school.register(1)
    school.registry.promote(two.version)
    client = school.tracking.client
    serving = client.get_model_version_by_alias("student", DAYTIME)
    assert client.get_model_version_download_uri("student", serving.version) == school.checkpoints[1].as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", client.tracking_uri)
    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    try:
        mlflow.set_tracking_uri(client.tracking_uri)
        mlflow.set_registry_uri(client.tracking_uri)
        found = mlflow.artifacts.download_artifacts("models:/student@daytime")
    finally:
        mlflow.set_tracking_uri(before[0])
        mlflow.set_registry_uri(before[1])
    assert Path(found).resolve() == school.checkpoints[1].resolve()


LOADS = """
import mlflow, json
from transformers import AutoModelForCausalLM, AutoTokenizer
folder = mlflow.artifacts.download_artifacts("models:/student@daytime")
model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
prompt = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], add_generation_prompt=True, tokenize=False)
print(json.dumps([folder, sum(weight.numel() for weight in model.parameters()), prompt]))
"""


def test_the_alias_loads_in_a_fresh_process_with_its_tokenizer_and_template(
    home_with_mlflow: Callable[[str], Home], tmp_path: Path
) -> None:
    """What a stranger does, who knows nothing of this program: MLflow's name, then transformers."""
    school = School(home_with_mlflow("school"))
    draft = write_tiny(tmp_path / "tiny")
    write_lineage(draft, None)
    checkpoint = school.checkpoints[0] = keep(draft, tmp_path / "checkpoints")
    weights = sum(weight.numel() for weight in plain_model(checkpoint).parameters())
    school.registry.promote(school.register(0).version)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}  # of other tests
    environment = inherited | {"MLFLOW_TRACKING_URI": school.tracking.client.tracking_uri, "PYTHONPATH": ""}
    found = subprocess.run(
        [sys.executable, "-c", LOADS], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert json.loads(found.stdout.splitlines()[-1]) == [str(checkpoint), weights, "<user>hi\n<assistant>"]
    verify(checkpoint)  # and nothing was written into it


def test_two_models_do_not_see_each_other(school: School) -> None:
    school.register(0)
    assert Registry(school.tracking.client, "studen").versions() == []
    assert Registry(school.tracking.client, "student-2").versions() == []


def test_what_others_registered_under_the_name_is_left_alone(school: School) -> None:
    """A version without a digest would otherwise name the folder of all checkpoints."""
    school.register(0)
    school.tracking.client.create_model_version("student", source=school.checkpoints[1].as_uri())
    assert [version.version for version in school.registry.versions()] == ["1"]


def test_a_version_that_is_removed_leaves_its_run(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.remove(one.version)
    assert [version.version for version in school.registry.versions()] == [two.version]
    assert school.tracking.client.get_run(school.tracking.run_id).data.metrics == {"exam/arithmetic-1-2": 0.5}
    again = school.register(0)
    assert again.version == "3"
