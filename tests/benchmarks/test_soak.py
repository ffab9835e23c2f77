"""The soak's arithmetic, and its look at real processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.soak import page, picture, slope, soak, summarise


def test_the_slope_of_the_second_half() -> None:
    assert slope([1, 2, 3, 4, 5, 6, 7, 8], [0, 900, 1000, 1000, 1000, 1003, 1006, 1009]) == pytest.approx(3.0)
    assert slope([1, 2, 3, 4], [500, 100, 7, 7]) == 0
    assert slope([10, 20, 30, 40], [0, 0, 100, 110]) == pytest.approx(1.0)  # rounds that nobody read are no rounds less
    assert slope([1, 2], [5, 6]) is None


def test_a_rounds_figure_is_the_median_of_its_readings() -> None:
    found = summarise({"trainer": {2: [40.0], 1: [10.0, 30.0, 11.0], 3: [41.0, 43.0], 4: [44.0]}})
    assert found == {
        "trainer": {
            "rounds": [1, 2, 3, 4],
            "mb": [11.0, 40.0, 42.0, 44.0],
            "peak_mb": 44.0,
            "slope_mb": pytest.approx(2.0),
        }
    }
    head, row = page(found).splitlines()
    assert head.split()[:5] == ["process", "first", "middle", "last", "peak"]
    assert row.split() == ["trainer", "11.0", "42.0", "44.0", "44.0", "+2.000"]
    axes: Any = picture(found).axes[0]
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == [11.0, 40.0, 42.0, 44.0]


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
    with pytest.raises(RuntimeError, match=r"^the night ended after 2 of 3 rounds: The reward is 0\.$"):
        soak(tmp_path / "student", 3)
