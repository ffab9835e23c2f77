"""Two whole nights of a tiny student that was taught by day: by a reward model that serves, and by a teacher.

The real command, trainer, Prefect server and MLflow; in vLLM's place the student samples for itself.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import get_current_settings

from conf.load import load_night
from conf.storage.home import Home
from flows.run.estimate import seconds_left
from flows.run.history import round_metrics
from models.lessons.preference_data import is_held_out
from rewards.gsm8k import INSTRUCTION
from tasks.layout import is_round
from tasks.plan import plan_night
from tasks.stage import committed
from tasks.tables import PROMPTS, read_table
from tests.chaos.school import DATE, School, open_school
from tests.models.support.chat_server import Served, chat_server, said
from tests.models.support.tiny import CHARACTERS
from tests.models.support.tiny_picks import QUICK, tiny_picks

pytestmark = pytest.mark.full

NEXT = "2026-01-02"
PICKS = 120
TRUTHS = ("7", "3", "5")  # what the traces teach mostly, now and then, and never
REWARD_MODEL = (
    f"reward_model={QUICK.model_dump_json()}",
    "learned_reward.owner_share=0.5",
    "grpo={rounds: 2, prompts_per_round: 16, group_size: 4, max_completion_tokens: 8, min_useful_groups: 1, "
    "refills: 0, quiz_every_rounds: 2, quiz_problems: 6, sampler_ratio_band: [0.0, 1000.0]}",
)
ORDER = (
    "stages=[distill, {grpo: 1}, self_distill, lessons, {grpo: 1}]",
    "preference_learning=direct",
    "grpo.prompts_per_round=18",
    "grpo.refills=0",
    "distill.steps=10",
)


def said_to(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def journal() -> Iterator[dict[str, Any]]:
    """Picks of the shortest of five answers, and a few lines of each other channel."""
    for number, pick in enumerate(tiny_picks(PICKS, seed=1)):
        asked = f"{number} " + "".join(CHARACTERS[token - 2] for token in pick.prompt)
        shown = ["".join(CHARACTERS[token - 2] for token in answer[:-1]) for answer in pick.answers]
        told = {"responses": shown, "chosen": pick.chosen, "policy": "imported"}
        yield {"kind": "preference", "messages": said_to(asked), **told}
    for number in range(12):
        asked = {"messages": said_to(f"Say {number}"), "response": "no no no"}
        yield {"kind": "correction", **asked, "correction": "no"}
        yield {"kind": "feedback", **asked, "value": -1}
        yield {"kind": "words", "text": f"We count: {number}, {number + 1}."}


def write_problems(folder: Path) -> str:
    folder.mkdir()
    for split, word, count in (("train", "many", 60), ("test", "much", 16)):
        truths = [TRUTHS[n % 3] if split == "train" else TRUTHS[0] for n in range(count)]
        rows = [{"question": f"How {word}? {n}", "answer": f"#### {truth}"} for n, truth in enumerate(truths)]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return f"benchmarks=[{{name: gsm8k, source: {folder}}}]"


@dataclass
class Taught:
    """The two nights of a home, and what the teacher was asked in the second."""

    home: Home
    first: Path
    second: Path
    teacher: Served


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory, prefect_server: Path) -> Taught:
    school = open_school(tmp_path_factory.mktemp("taught") / "tiny", get_current_settings().api.url)
    problems = write_problems(school.root / "mixed")
    home = school.home("home")
    with (home.journal / f"{DATE}.jsonl").open("a") as file:
        file.writelines(json.dumps({"version": 1, "at": DATE, **line}) + "\n" for line in journal())
    with chat_server(lambda request: said(f"#### {TRUTHS[2]}")) as server:
        teacher = f"distill.teacher={{base_url: '{server.url}', model: wise, problems: 4, answers: 1, retries: 0}}"
        _succeed(school, home, DATE, problems, *REWARD_MODEL)
        _succeed(school, home, NEXT, problems, *ORDER, teacher)
    return Taught(home, home.night(DATE), home.night(NEXT), server)


def _succeed(school: School, home: Home, date: str, *settings: str) -> None:
    code = school.start(home, date=date, settings=settings)
    assert code == 0, (school.watch(home) / "said.log").read_text()[-3000:]


def asked_in(night: Path, source: str) -> list[list[dict[str, str]]]:
    tables = [read_table(file, PROMPTS) for file in sorted(night.glob("round-*/select_prompts/prompts.parquet"))]
    return [json.loads(text) for table in tables for text in table.messages[table.source == source]]


def test_a_reward_model_is_fitted_serves_and_takes_part(taught: Taught) -> None:
    outcome = json.loads((taught.first / "fit_reward_model" / "outcome.json").read_text())
    assert outcome["serves"]
    assert outcome["accuracy"]["low"] > outcome["chance"]
    assert outcome["picks"] == PICKS + 12 - outcome["left_out"]["correction"]  # no judge
    kept = taught.home.checkpoints / (taught.first / "fit_reward_model" / "checkpoint.txt").read_text()
    assert (kept / "reward_head.safetensors").exists()
    for figures in round_metrics(taught.first):
        assert figures["reward/learned_spread"] > 0
        assert "kl" in figures
    owners, exercises = asked_in(taught.first, "journal"), asked_in(taught.first, "benchmark")
    assert len(owners) == len(exercises) == 16
    assert "A reward model was used" in (taught.first / "report.html").read_text()


def test_what_judges_it_was_seen_by_no_lesson_and_no_round(taught: Taught) -> None:
    share = QUICK.held_out_share
    held_out = sum(is_held_out(said_to(f"Say {number}"), share) for number in range(12))
    assert 0 < held_out < 12
    for channel in ("corrections", "feedback"):
        counts = json.loads((taught.first / "lessons" / channel / "counts.json").read_text())
        assert (counts["lines"], counts["used"], counts["held_out"]) == (12, 12 - held_out, held_out)
    assert not [messages for messages in asked_in(taught.first, "journal") if is_held_out(messages, share)]


def test_the_teacher_answers_what_was_never_solved_and_is_learnt(taught: Taught) -> None:
    asked = json.loads((taught.second / "ask_teacher" / "asked.json").read_text())
    assert 0 < asked["answered"] == asked["problems"] == len(taught.teacher.requests) <= 4
    contents = [request["messages"][-1]["content"] for request in taught.teacher.requests]
    numbers = [int(text.removeprefix("How many? ").removesuffix(f"\n{INSTRUCTION}")) for text in contents]
    assert TRUTHS[2] in {TRUTHS[number % 3] for number in numbers}
    sources = json.loads((taught.second / "distill" / "sources.json").read_text())
    (own,) = [row for row in sources if row["source"] == "asked by night"]
    assert own["kept"] == sum(TRUTHS[number % 3] == TRUTHS[2] for number in numbers)
    assert own["kept"] + own["dropped"] == asked["answered"]
    assert "The teacher wise answered" in (taught.second / "report.html").read_text()


def test_the_stages_are_learnt_in_the_order_of_the_configuration(taught: Taught) -> None:
    night = taught.second
    began = [night / place / "manifest.json" for place in ("distill", "round-01/checkpoint", "self_distill")]
    began += [night / "lessons" / "corrections" / "manifest.json", night / "round-02" / "checkpoint" / "manifest.json"]
    assert sorted(began, key=lambda file: file.stat().st_mtime_ns) == began
    own = json.loads((night / "self_distill" / "counts.json").read_text())
    assert own["kept"] > 0
    picks = json.loads((night / "lessons" / "picks" / "counts.json").read_text())
    assert picks["used"] == picks["lines"] == PICKS  # nothing is held out where no reward model is wanted
    outcome = json.loads((night / "fit_reward_model" / "outcome.json").read_text())
    assert (outcome["serves"], outcome["reason"]) == (
        False,
        "preference_learning is direct: the picks are learnt without a reward model",
    )


def test_the_plan_has_every_stage(taught: Taught, tmp_path: Path) -> None:
    for night in (taught.first, taught.second):
        config = load_night(night / "config.yaml")
        planned = [stage for stage in plan_night(config).timeline if not (stage.optional or is_round(stage.path))]
        assert all(committed(night / stage.path) for stage in planned)
        (tmp_path / night.name).mkdir()
        assert (seconds_left(tmp_path / night.name, config, "starting", 0.0, night) or 0) > 0
