"""What prefect.yaml's build step finds out."""

import sys
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import InputError
from flows.orchestration.deployment import night_of


def test_a_configuration_is_the_parameter_that_makes_it_again() -> None:
    for file in STARTER.parent.glob("*.yaml"):
        found = night_of(str(file))
        assert NightConfig.model_validate(found["config"]) == load_night(file)
        assert "keep_nights" not in found["config"]  # a default, which the form shows
        assert found["command"] == f"{sys.executable} -m flows.orchestration.worker_run"


def test_the_clocks_are_the_configurations_or_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "Asia/Tokyo")
    assert night_of(str(STARTER))["time_zone"] == "Asia/Tokyo"
    own = tmp_path / "own.yaml"
    own.write_text(f"{STARTER.read_text()}\ndeadline_time_zone: Europe/Berlin\n")
    assert night_of(str(own))["time_zone"] == "Europe/Berlin"


def test_a_file_that_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        night_of(str(tmp_path / "none.yaml"))
