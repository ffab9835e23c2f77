"""What `nightschool night --plan` says."""

from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home, InputError
from flows.run.context import freeze_config
from flows.run.plan import plan

DATE = "2026-01-20"


def test_the_plan_of_a_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.run.speed.measure_speed", lambda: 1e12)
    home, config = Home(tmp_path / "school"), load_night(STARTER, ["stages=[distill, lessons, {grpo: 80}]"])
    found = plan(home, config, DATE)
    assert [what for what, _ in found] == [
        *("night", "student", "practice", "lesson", "lesson", "rounds", "", "exam", "then")
    ]
    said = dict(found)
    assert said["night"] == f"{DATE}, new, 15 minutes, in {home.root}"
    assert said["rounds"].startswith("up to 80 of 24 × 8 answers, ")
    assert said["exam"] == "arithmetic-1-2 (all), instructions (up to 150)"
    freeze_config(home.night(DATE), config, fresh=False)
    monkeypatch.setattr("flows.run.speed.time.time", lambda: 4e9)
    assert dict(plan(home, config, DATE))["night"].startswith(f"{DATE}, begun, its time is over, ")
    assert not [*home.night(DATE).glob("round-*")]


def test_a_night_whose_deadline_is_past_has_no_plan(tmp_path: Path) -> None:
    config = load_night(STARTER, ["deadline=06:30"])
    with pytest.raises(InputError, match="is past"):
        plan(Home(tmp_path / "school"), config, DATE)
