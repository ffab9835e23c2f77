"""What `nightschool night --plan` says."""

import json
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home, InputError
from flows.run.context import freeze_config
from flows.run.plan import plan
from tasks.evaluation.decide import MASTERED
from tests.flows.nights import finished_night

DATE = "2026-01-20"


def test_the_plan_of_a_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.run.speed.measure_speed", lambda: 1e12)
    home, config = Home(tmp_path / "school"), load_night(STARTER, ["stages=[distill, lessons, {grpo: 80}]"])
    found = plan(home, config, DATE)
    assert [what for what, _ in found] == [
        *("night", "student", "practice", "journal", "lesson", "lesson", "rounds", "", "exam", "then")
    ]
    said = dict(found)
    assert said["night"] == f"{DATE}, new, 15 minutes, in {home.root}"
    assert said["rounds"].startswith("up to 80 rounds of 24 prompts × 8 completions, about ")
    assert said["exam"] == "arithmetic-1-2 (all), instructions (up to 150)"
    freeze_config(home.night(DATE), config, fresh=False)
    monkeypatch.setattr("flows.run.speed.time.time", lambda: 4e9)
    assert dict(plan(home, config, DATE))["night"].startswith(f"{DATE}, begun, its time is over, ")
    another = load_night(STARTER, ["seed=9"])
    with pytest.raises(InputError, match="--fresh"):
        plan(home, another, DATE)
    assert dict(plan(home, another, DATE, fresh=True))["night"].startswith(f"{DATE}, new, ")
    assert not [*home.night(DATE).glob("round-*")]


def test_a_plan_tells_of_the_journal_and_of_a_mastered_exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.run.speed.measure_speed", lambda: 1e12)
    home, config = Home(tmp_path / "school"), load_night(STARTER, ["exam.next_level_at=null"])
    decided = {"decision": "kept", "digests": {"champion": "gone"}, "serving": None, "reasons": [MASTERED]}
    finished_night(home, "2026-01-19", config, **decided)
    home.journal.mkdir()
    lines = [{"version": 1, "kind": "words", "at": DATE, "text": text} for text in ("One.", "Two.")]
    (home.journal / f"{DATE}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = dict(plan(home, config, DATE))
    assert (said["journal"], said["then"]) == ("words: 2", MASTERED)


@pytest.mark.parametrize(
    ("file", "setting", "why"),
    [("starter", "deadline=06:30", "is past"), ("questions", "benchmarks.0.source=gone.csv", "gone.csv")],
)
def test_the_plan_refuses_what_the_night_refuses(tmp_path: Path, file: str, setting: str, why: str) -> None:
    config = load_night(STARTER.with_name(f"{file}.yaml"), [setting])
    with pytest.raises(InputError, match=why):
        plan(Home(tmp_path / "school"), config, DATE)
