"""A night's exam runs once, and once more after an upgrade."""

from pathlib import Path

import pytest
from tests.flows.evaluation.vault_school import RIGHT, School

from flows.evaluation.run import evaluate_checkpoint


@pytest.mark.usefixtures("prefect_server")
def test_a_resumed_night_evaluates_again_after_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two graders would compare champion and candidate."""
    school = School(tmp_path / "school")
    night, engine = school.night("2026-11-20", RIGHT, vault=None)
    first = evaluate_checkpoint(night, "evaluate/champion", school.first)
    resumed, fresh = school.night("2026-11-20", RIGHT, vault=None)
    assert evaluate_checkpoint(resumed, "evaluate/champion", school.first) == first
    assert (engine.calls, fresh.calls) == (1, 0)
    monkeypatch.setattr("tasks.evaluation.cache.grader_version", lambda: "a newer one")
    evaluate_checkpoint(resumed, "evaluate/champion", school.first)
    assert fresh.calls == 1
