"""The values that prefect.yaml's build step adds."""

import sys
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from flows.orchestration.deployment import night_values


def test_the_parameter_gives_the_configuration_back() -> None:
    for file in STARTER.parent.glob("*.yaml"):
        values = night_values(str(file))
        assert NightConfig.model_validate(values["config"]) == load_night(file)
        assert "keep_nights" not in values["config"]  # a default, which the form shows
        assert values["command"] == f"{sys.executable} -m flows.orchestration.worker_run"


def test_the_time_zone_is_the_configurations_or_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "Asia/Tokyo")
    assert night_values(str(STARTER))["time_zone"] == "Asia/Tokyo"
    file = tmp_path / "night.yaml"
    file.write_text(f"{STARTER.read_text()}\ndeadline_time_zone: Europe/Berlin\n")
    assert night_values(str(file))["time_zone"] == "Europe/Berlin"
