"""The soak's arithmetic, and its look at real processes."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.soak import main, slope, soak


def test_the_slope_of_the_second_half() -> None:
    assert slope([1, 2, 3, 4, 5, 6, 7, 8], [0, 900, 1000, 1000, 1000, 1003, 1006, 1009]) == pytest.approx(3.0)
    assert slope([1, 2, 3, 4], [500, 100, 7, 7]) == 0
    assert slope([10, 20, 30, 40], [0, 0, 100, 110]) == pytest.approx(1.0)  # rounds that nobody read are no rounds less
    assert slope([1, 2], [5, 6]) is None


def test_a_night_of_fewer_rounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: object, **__: object) -> Path:
        for number in range(1, 4):
            (tmp_path / f"round-{number:02d}" / "checkpoint").mkdir(parents=True)
        for place in ("round-01", "round-02"):  # the third is not committed
            (tmp_path / place / "checkpoint" / "manifest.json").write_text("{}")
        (tmp_path / "summary.json").write_text(json.dumps({"ended_early": None, "alarms": ["The reward is 0."]}))
        return tmp_path

    monkeypatch.setattr("benchmarks.soak.run_night", short)
    monkeypatch.setattr("benchmarks.soak.WORK", tmp_path)
    with pytest.raises(RuntimeError, match="2 of 3 rounds.*The reward is 0"):
        soak(tmp_path / "student", 3)


def test_a_night_that_sleeps_for_no_time_is_not_the_soak(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.soak.suspended", lambda minutes: {"slept": minutes})
    monkeypatch.setattr(sys, "argv", ["soak", "--suspend", "0"])
    main()
    assert json.loads(capsys.readouterr().out) == {"slept": 0}
