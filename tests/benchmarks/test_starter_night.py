"""The minutes of the starter nights: measured once, and unknown where a night was interrupted."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.starter_night import night


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the nights' homes; the command only makes them."""

    def run(*_: str, environment: dict[str, str]) -> dict[str, Any]:
        Path(environment["NIGHTSCHOOL_HOME"]).mkdir(exist_ok=True)
        return {"night": "2026-01-01"}

    monkeypatch.setattr("benchmarks.starter_night.HOMES", tmp_path)
    monkeypatch.setattr("benchmarks.starter_night.json_of", run)
    return tmp_path


def test_a_finished_night_keeps_its_minutes(homes: Path) -> None:
    assert night(1)["minutes"] >= 0
    (homes / "seed-1" / "minutes.txt").write_text("12.5")
    assert night(1)["minutes"] == 12.5


def test_an_interrupted_night_has_no_minutes(homes: Path) -> None:
    (homes / "seed-1").mkdir()
    assert night(1)["minutes"] is None
    assert not (homes / "seed-1" / "minutes.txt").exists()
