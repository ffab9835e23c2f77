import json
from pathlib import Path

import pytest

from benchmarks.learning import at
from benchmarks.nights.learning_runs import learn, learning_seconds
from benchmarks.nights.timed import Round

CURVE = [[0.0, 0.2], [10.0, 0.4], [40.0, 0.7]]


@pytest.mark.parametrize(("seconds", "share"), [(0, 0.2), (5, 0.3), (10, 0.4), (25, 0.55), (40, 0.7), (99, 0.7)])
def test_the_curve_is_interpolated(seconds: float, share: float) -> None:
    assert at(CURVE, seconds) == pytest.approx(share)


def test_the_start_of_engine_and_trainer_does_not_count() -> None:
    """Round 1 began at 100 and took 30 s more beside its work than round 2, which is when both were started."""
    rounds = [Round(1, 100.0, 150.0, 150.5, {}), Round(2, 150.5, 171.0, 171.5, {}), Round(3, 171.5, 191.0, 192.0, {})]
    assert learning_seconds(rounds, [31.0, 1.0, 2.0]) == [20.0, 41.0, 61.0]


def test_a_night_that_ends_before_its_time_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its curve would go on as a straight line."""

    def short(*_: object, **__: object) -> Path:
        (tmp_path / "summary.json").write_text(json.dumps({"ended_early": "A child died.", "alarms": []}))
        return tmp_path

    monkeypatch.setattr("benchmarks.nights.learning_runs.run_night", short)
    with pytest.raises(RuntimeError, match=r"0 rounds.*A child died"):
        learn("temperature 1", tmp_path / "student", tmp_path / "teacher", 1, 60.0, tmp_path / "work")
