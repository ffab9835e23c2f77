"""A whole night whose reward model serves: the real command, trainer, Prefect and MLflow, and a tiny student.

In vLLM's place the student samples for itself. The other lessons of a whole night are in test_full_day.py.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import get_current_settings

from flows.run.history import read_round_metrics
from tasks.tables import PROMPTS, read_table
from tests.chaos.school import DATE, open_school
from tests.tasks.doubles.picks import preference_rows

pytestmark = pytest.mark.full

PICKS = 120
BY_DAY = 24  # of them, from the classroom
SETTINGS = (
    "preference_learning=both",
    "learned_reward.owner_share=0.5",
    "grpo={rounds: 2, prompts_per_round: 16, group_size: 4, max_completion_tokens: 8, min_useful_groups: 1, "
    "refills: 0, quiz_every_rounds: 2, sampler_ratio_band: [0.0, 1000.0]}",
    "start_from=day",
    "lessons.picks.learning_rate=1e-7",
    "teach={step_nats: 0.2, kl_per_lesson: 10, kl_of_day: 10}",
)


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def journal() -> Iterator[dict[str, Any]]:
    """Picks of the shortest of five answers, and a few lines of the other channels."""
    for number, row in enumerate(preference_rows(PICKS)):
        lists = {name: json.loads(row[name]) for name in ("messages", "responses")}
        classroom = {"lesson": f"lesson {number}", "live": True} if number < BY_DAY else {}
        yield {"kind": "preference", **row, **lists, "policy": "imported", **classroom}
    for number in range(12):
        asked = {"messages": said(f"Say {number}"), "response": "no no no"}
        yield {"kind": "correction", **asked, "correction": "no"}
        yield {"kind": "feedback", **asked, "value": -1}
        yield {"kind": "words", "text": f"We count: {number}, {number + 1}."}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, prefect_server: None) -> Path:
    school = open_school(tmp_path_factory.mktemp("taught") / "tiny", get_current_settings().api.url)
    home = school.home("home")
    with (home.journal / f"{DATE}.jsonl").open("a") as file:
        file.writelines(json.dumps({"version": 1, "at": DATE, **line}) + "\n" for line in journal())
    code = school.start(home, settings=SETTINGS)
    assert code == 0, (school.watch(home) / "said.log").read_text()[-3000:]
    return home.night(DATE)


def prompts(night: Path, source: str) -> list[list[dict[str, str]]]:
    """The conversations that the rounds practised, of the owner ("journal") or of benchmarks."""
    tables = [read_table(file, PROMPTS) for file in sorted(night.glob("round-*/select_prompts/prompts.parquet"))]
    return [json.loads(text) for table in tables for text in table.messages[table.source == source]]


def test_a_reward_model_is_fitted_and_used(night: Path) -> None:
    outcome = json.loads((night / "fit_reward_model" / "outcome.json").read_text())
    assert outcome["serves"]
    assert outcome["accuracy"]["low"] > outcome["chance"]
    assert outcome["picks"] == PICKS + 12 - outcome["left_out"]["correction"]
    checkpoint = (night / "fit_reward_model" / "checkpoint.txt").read_text()
    assert (night.parents[1] / "checkpoints" / checkpoint / "reward_head.safetensors").exists()
    for metrics in read_round_metrics(night):
        assert metrics.keys() >= {"reward/learned_spread", "kl"}
    assert read_round_metrics(night)[-1]["reward/learned_spread"] > 0  # at first, all answers may be alike
    assert len(prompts(night, "journal")) == len(prompts(night, "benchmark")) == 16
    assert "A reward model was used" in (night / "report.html").read_text()


def test_the_night_begins_with_the_day_copy_and_teaches_its_lines_no_more(night: Path) -> None:
    read = {name: json.loads((night / name).read_text()) for name in ("replay_day/day.json", "choose_start/start.json")}
    replayed, start = read.values()
    assert 0 < replayed["learned"] == replayed["lessons"] < BY_DAY  # some are held out
    assert start["day"] is True, start["reasons"]
    assert (night / "quiz" / "day" / "manifest.json").exists()
    taught = json.loads((night / "lessons" / "picks" / "counts.json").read_text())
    assert taught["lines"] == PICKS - replayed["learned"]
    manifests = (night / path / "manifest.json" for path in ("lessons/corrections", "replay_day"))
    first, replay = (json.loads(manifest.read_text())["inputs"] for manifest in manifests)
    assert first["checkpoint"] != replay["champion"]
    page = (night / "report.html").read_text()
    assert '<h2 id="day">Your day</h2>' in page
    assert "The night began with it: Of your held-out picks, it favours your choice" in page
