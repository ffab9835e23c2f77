"""A night's exam is sat once, and once more after an upgrade."""

from pathlib import Path

import pytest

from flows.evaluation.run import sit
from tests.flows.evaluation.test_vault import RIGHT, School


@pytest.mark.usefixtures("prefect_server")
def test_a_night_that_goes_on_after_an_upgrade_sits_its_exams_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else champion and candidate would be compared by two graders."""
    school = School(tmp_path / "school")
    night, engine = school.night("2026-11-20", RIGHT, vault=None)
    first = sit(night, "evaluate/champion", school.first)
    assert sit(night, "evaluate/champion", school.first) == first
    again, fresh = school.night("2026-11-20", RIGHT, vault=None)
    assert sit(again, "evaluate/champion", school.first) == first
    assert (engine.calls, fresh.calls) == (1, 0)
    monkeypatch.setattr("tasks.evaluation.cache.grader_version", lambda: "a newer one")
    sit(again, "evaluate/champion", school.first)
    assert fresh.calls == 1
