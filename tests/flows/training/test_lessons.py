"""Lessons of worked solutions: all sources make one lesson, and the student's own answers another."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.inputs import frozen_day
from flows.training.lessons import Lessons
from models.hf.checkpoint import keep
from models.lessons.pace import Pace
from rewards.arithmetic import Arithmetic
from tasks.journal.tables import CORRECTIONS, PREFERENCES, TRACES
from tests.flows.nights import finished_night
from tests.models.support.chat_server import chat_server, said
from tests.models.support.tiny import write_tiny
from tests.rewards.datasets import write_gsm8k
from tests.tasks.doubles.tables import WRONG, write_round, write_stage
from tests.tasks.doubles.workers import InProcessWorker

pytestmark = pytest.mark.usefixtures("prefect_server")
DATE = "2026-11-20"
UNSEEN = '[{"role": "user", "content": "How are you?"}]'  # held out by its hash


@pytest.fixture
def night(tmp_path: Path, trainer: InProcessWorker) -> Callable[..., Night]:
    def make(*settings: str) -> Night:
        small = "distill={steps: 3, batch_size: 1, learning_rate: 0.01}"
        stages = "stages=[distill, {grpo: 1}, self_distill, {grpo: 1}]"
        config = load_night(STARTER, [small, stages, "engine.max_model_len=128", "student.system=null", *settings])
        night = Night(Home(tmp_path / "school"), DATE, config)
        night.trainer, night.exam_questions = trainer, ()
        return night

    return make


def champion(home: Home) -> Path:
    home.checkpoints.mkdir(parents=True, exist_ok=True)
    return keep(write_tiny(home.checkpoints / "draft"), home.checkpoints)


@pytest.mark.slow
def test_journal_file_and_teacher_are_one_lesson(tmp_path: Path, night: Callable[..., Night]) -> None:
    file = tmp_path / "some.jsonl"
    rows = [{"prompt": "7 + 6?", "response": "<think>So</think><answer>13</answer>", "truth": "13"}, "no row"]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    with chat_server(lambda request: said("7 + 8 = 15\n#### 12")) as server:
        tonight = night(
            f"distill.files=[{{source: {file}, benchmark: arithmetic}}]",
            f"distill.teacher={{endpoint: {{base_url: '{server.url}', model: wise}}, answers: 1}}",
        )
        home = tonight.home
        tonight.exam_questions = tuple(problem.question for problem in Arithmetic(levels=["1"]).problems("test"))
        write_round(home.nights / "2026-11-19/round-01", {"7 + 8?": [WRONG]})
        own = {"messages": '[{"role": "user", "content": "7 + 5?"}]', "teacher": "me", "source": "2026-11-20.jsonl:1"}
        own |= {"response": "#### 12", "benchmark": "arithmetic", "truth": "12"}
        shown = {"messages": UNSEEN, "responses": '["12", "13"]', "chosen": 0, "policy": "?", "held_out": True}
        lessons = [own, own | {"messages": UNSEEN}]
        tables = {"traces": (TRACES, lessons), "preferences": (PREFERENCES, [shown]), "corrections": (CORRECTIONS, [])}
        day = write_stage(home.night(DATE) / "freeze_journal", tables)
        before = champion(home)
        plenty = Pace(1e6, tmp_path / "pace.json")
        lessons, step = Lessons(tonight, day), tonight.config.steps[0]
        after = lessons.teach(step, before, plenty)
        assert len(server.requests) == 1
    assert after != before
    assert (after / "config.json").exists()
    sources = json.loads((tonight.folder / "distill" / "sources.json").read_text())
    found = {(row["source"], row["kept"], row["held_out"]) for row in sources}
    assert found == {("2026-11-20.jsonl", 1, 1), ("asked by night", 1, 0), ("some.jsonl", 1, 0)}
    assert len(json.loads((tonight.folder / "distill" / "curve.json").read_text())) == 3
    assert json.loads((tonight.folder / "distill" / "pace.json").read_text())["steps"] == 3
    assert lessons.teach(step, before) == after  # committed: the teacher is not asked again


TRACE = {"messages": UNSEEN, "teacher": "me", "source": "x", "response": "12", "benchmark": None, "truth": None}
ONE_TRACE = {"traces": (TRACES, [TRACE]), "preferences": (PREFERENCES, []), "corrections": (CORRECTIONS, [])}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The inputs of each stage that would be run, by its path."""
    planned: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(Night, "run", lambda _, stage, path, **inputs: planned.setdefault(path, inputs))
    monkeypatch.setattr(Lessons, "_learn", lambda _, stage, path, before, **inputs: planned.setdefault(path, inputs))
    return planned


@pytest.mark.parametrize(("fitting", "steps"), [(None, 20), (30, 20), (3, 3)])
def test_a_slow_machine_plans_fewer_steps_and_rehearses_no_more_than_they_use(
    night: Callable[..., Night], planned: dict[str, Any], fitting: int | None, steps: int
) -> None:
    tonight = night("distill={steps: 20, batch_size: 4, rehearsal: 0.5}")
    day = write_stage(tonight.folder / "freeze_journal", ONE_TRACE)
    Lessons(tonight, day, fitting=fitting).teach(tonight.config.steps[0], champion(tonight.home))
    assert (planned["distill"]["config"].steps, planned["rehearsal"]["count"]) == (steps, 2 * steps)


def test_joined_levels_are_taught_not_rehearsed(night: Callable[..., Night], planned: dict[str, Any]) -> None:
    """Level 3, whose stories have four sentences and more, has joined since the first night."""
    tonight = night(
        "distill={steps: 20, batch_size: 4, rehearsal: 0.5}",
        'benchmarks=[{name: arithmetic, levels: ["1", "2", "3"]}]',
        'exam.target={benchmark: arithmetic, levels: ["1", "2", "3"]}',
    )
    finished_night(tonight.home, "2026-11-19", load_night(STARTER))
    day, before = write_stage(tonight.folder / "freeze_journal", ONE_TRACE), champion(tonight.home)
    frozen_day(tonight, before)
    assert planned["freeze_journal"]["joined_levels"] == ("3", "4", "5")
    Lessons(tonight, day, trained=True).teach(tonight.config.steps[0], before)
    stories = [prompt.removeprefix(Arithmetic.instruction) for prompt in planned["rehearsal"]["practised"]]
    assert len(stories) == 20
    assert max(story.count(".") for story in stories) == 3


def test_exam_questions_are_not_rehearsed(tmp_path: Path, night: Callable[..., Night], planned: dict[str, Any]) -> None:
    source = write_gsm8k(tmp_path / "gsm8k", 4)
    tonight = night("distill.rehearsal=0.5", "distill.batch_size=8", f"benchmarks=[{{name: gsm8k, source: {source}}}]")
    day = write_stage(tonight.folder / "freeze_journal", ONE_TRACE)
    tonight.exam_questions = ("How many? 1", "How many? 3")
    Lessons(tonight, day, trained=True).teach(tonight.config.steps[0], champion(tonight.home))
    asked = planned["rehearsal"]["practised"]
    assert sorted(prompt.rpartition(" ")[2] for prompt in asked) == ["0", "2"]


def test_its_own_answers(night: Callable[..., Night]) -> None:
    tonight = night()
    before = champion(tonight.home)
    lessons = Lessons(tonight, write_stage(tonight.folder / "freeze_journal", {}))
    step = tonight.config.steps[2]
    assert lessons.teach(step, before) == before  # no answers yet
    right = ("#### 12", 1.0)
    write_round(tonight.folder / "round-01", {"7 + 5?": [right, WRONG, WRONG], "7 + 6?": [WRONG, WRONG]})
    write_round(tonight.folder / "round-02", {"7 + 7?": [right, WRONG, WRONG]})
    after = lessons.teach(step, before)
    assert after != before
    assert json.loads((tonight.folder / "self_distill" / "counts.json").read_text())["kept"] == 1
    assert lessons.teach(step, before) == after
