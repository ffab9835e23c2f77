"""Nights for the report, written once: a test that changes one takes its own copy."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.report.page import render
from tests.tasks.doubles.night import Night, interval, write_night, write_past_night


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A night's folder and summary, to be read only."""
    folder = tmp_path_factory.mktemp("nights") / "2026-11-20"
    return folder, write_night(folder)


@pytest.fixture(scope="session")
def page(night: Night) -> str:
    """Its report."""
    return render(*night)


@pytest.fixture
def decision(night: Night) -> dict[str, Any]:
    """What its exam decided."""
    return json.loads((night[0] / "decide" / "decision.json").read_text())


@pytest.fixture
def own_night(night: Night, tmp_path: Path) -> Night:
    """A copy of it that a test may change."""
    folder = tmp_path / "2026-11-20"
    shutil.copytree(night[0], folder)
    return folder, dict(night[1])


@pytest.fixture
def three_nights(own_night: Night) -> Night:
    """It again, after two nights of which only configuration and summary are left; the second kept its champion."""
    folder, summary = own_night
    write_past_night(folder.parent / "2026-11-18", 0.1, 0.3, promoted=True)
    write_past_night(folder.parent / "2026-11-19", 0.3, 0.2, promoted=False)
    return folder, summary | {"accuracy": {"champion": interval(0.3), "candidate": interval(0.5)}}
