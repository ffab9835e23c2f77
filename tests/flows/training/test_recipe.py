"""Nights of several blocks, on the real stages, trainer, Prefect and MLflow: their order, and what interrupts them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.run.history import round_metrics
from models.checkpoint import DamagedCheckpointError, base_of, parent_of
from models.optim.trainer_state import NOTE
from tasks.incidents import EarlyEnd, ended_early
from tasks.rollouts import engine_process as in_engine
from tests.flows.rounds import DATE, School, ScriptedEngine, SlowEngine, TinyEngine, rollout

SCRIPT = [(1, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1)]
TWICE = ("stages=[distill, {grpo: 1}, distill, {grpo: 1}]", "grpo.refills=0")

CHAIN = ("distill", "round-01/checkpoint", "distill-2", "round-02/checkpoint")

Finished = tuple[Path, Path]


def noted(folder: Path, place: str) -> str:
    return (folder / place / "checkpoint.txt").read_text()


@pytest.fixture(scope="module")
def finished(school: School) -> Finished:
    """A night that distils, practises, distils again and practises again."""
    return school.study("twice", ScriptedEngine(school.student, SCRIPT), *TWICE)


def test_each_step_goes_on_from_the_one_before(finished: Finished) -> None:
    folder, candidate = finished
    made = [noted(folder, place) for place in CHAIN]
    assert len(set(made)) == 4
    assert [parent_of(candidate.parent / made[n]) for n in (1, 2, 3)] == made[:3]
    assert candidate.name == made[-1]
    assert sorted(place.name for place in folder.glob("*/manifest.json")) == ["manifest.json"] * 3  # day, distill × 2
    assert [json.loads((folder / place / "curve.json").read_text())[-1]["step"] for place in CHAIN[::2]] == [2, 2]


LOST = {"after the first block": ["distill-2", "round-02"], "in the second block": ["round-02/checkpoint"]}


@pytest.mark.parametrize("when", LOST)
def test_a_night_killed_between_blocks_comes_to_the_same_bits(
    finished: Finished,
    school: School,
    when: str,
) -> None:
    folder, candidate = finished
    name = when.replace(" ", "-")
    shutil.copytree(school.home("twice").root, school.root / name)
    again = school.home(name)
    for place in LOST[when]:
        shutil.rmtree(again.night(DATE) / place)
    shutil.rmtree(again.checkpoints / candidate.name)
    sampled = [SCRIPT[1]] if "round-02" in LOST[when] else []
    engine = ScriptedEngine(school.student, sampled)
    resumed, found = school.study(name, engine, *TWICE)
    assert len(engine.asked) == len(sampled)
    assert found.name == candidate.name
    assert noted(resumed, "distill-2") == noted(folder, "distill-2")


def test_a_night_does_not_go_on_from_a_damaged_checkpoint(finished: Finished, school: School) -> None:
    folder, _ = finished
    shutil.copytree(school.home("twice").root, school.root / "damaged")
    home = school.home("damaged")
    shutil.rmtree(home.night(DATE) / "round-02/checkpoint")
    weights = home.checkpoints / noted(folder, "distill-2") / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedCheckpointError, match=f"{weights.parent}: .*--fresh"):
        school.study("damaged", ScriptedEngine(school.student, []), *TWICE)


def test_a_block_begins_with_a_new_optimizer_whoever_held_the_weights(school: School) -> None:
    """One block right after the other: in the night the trainer holds the very weights, and its optimizer with them."""
    order = ("stages=[{grpo: 1}, {grpo: 1}]", "grpo.refills=0")
    folder, candidate = school.study("adjacent", ScriptedEngine(school.student, SCRIPT), *order)
    assert parent_of(candidate) == noted(folder, "round-01/checkpoint")
    shutil.rmtree(folder / "round-02")
    shutil.rmtree(candidate)
    _, again = school.study("adjacent", ScriptedEngine(school.student, SCRIPT[1:]), *order)
    assert again.name == candidate.name
    one_block, _ = school.study("one", ScriptedEngine(school.student, SCRIPT), "grpo.rounds=2", "grpo.refills=0")
    steps = [json.loads((night / "state" / "round-02" / NOTE).read_text())["step"] for night in (folder, one_block)]
    assert steps == [1, 2]


def test_each_blocks_adapter_is_merged(school: School) -> None:
    engine = ScriptedEngine(school.student, SCRIPT)
    folder, candidate = school.study(
        "adapters", engine, "stages=[{grpo: 1}, distill, {grpo: 1}]", "grpo.refills=0", "lora={rank: 4, alpha: 8}"
    )
    assert candidate.name == noted(folder, "merge-2")
    first, second = (candidate.parent / noted(folder, f"round-0{number}/checkpoint") for number in (1, 2))
    assert parent_of(candidate.parent / noted(folder, "distill")) == noted(folder, "merge")
    assert (base_of(first).name, base_of(second).name) == (school.student.name, noted(folder, "distill"))
    assert base_of(candidate) == candidate


def test_a_severe_alarm_ends_all_that_would_follow(
    school: School,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("flows.training.monitor.bytes_of_a_round", lambda *_: 10**18)
        folder, candidate = school.study("severe", ScriptedEngine(school.student, SCRIPT), *TWICE)
    assert candidate.name == noted(folder, "round-01/checkpoint")
    assert not (folder / "distill-2").exists()
    assert school.study("severe", ScriptedEngine(school.student, []), *TWICE) == (folder, candidate)


def test_a_night_without_time_for_the_second_lesson_ends_before_it(
    school: School,
    clock: list[float],
) -> None:
    """After round 1 a second less is left than exam and report need."""
    engine = SlowEngine(school.student, clock, call=1, seconds=3600 - 59)
    folder, candidate = school.study("hurried", engine, *TWICE, "budget_minutes=60")
    assert candidate.name == noted(folder, "round-01/checkpoint")
    early = ended_early(folder)
    assert early is not None
    assert (early.rounds, early.steps) == (1, 2)
    assert early.why.startswith("The night ended its rounds after 1 of 2: the lesson distill-2 was not begun: it would")
    again = ScriptedEngine(school.student, [])
    assert school.study("hurried", again, *TWICE)[1] == candidate  # with all the time in the world


@pytest.mark.full
def test_a_night_without_time_for_the_second_block_keeps_the_lesson(
    finished: Finished,
    school: School,
) -> None:
    folder, _ = finished
    shutil.copytree(school.home("twice").root, school.root / "late")
    shutil.rmtree(school.home("late").night(DATE) / "round-02")
    engine = ScriptedEngine(school.student, [])
    late, candidate = school.study("late", engine, *TWICE, "budget_minutes=0.5")
    assert candidate.name == noted(folder, "distill-2")
    early = ended_early(late)
    assert isinstance(early, EarlyEnd)
    assert (early.rounds, early.steps) == (1, 4)
    assert school.study("late", engine, *TWICE)[1] == candidate


class ExaminedEngine(ScriptedEngine):
    """It knows no answer to the exam; it notes who sat it."""

    def __init__(self, student: Path, script: Any) -> None:
        super().__init__(student, script)
        self.sat: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if function is in_engine.sample and options.get("temperature") == 0.0:
            checkpoint, _, prompts, _ = arguments
            self.sat.append(checkpoint.name)
            return [[rollout(n, 0, prompt, "?", checkpoint.name)] for n, prompt in enumerate(prompts)], {}
        return super().call(function, *arguments, **options)


@pytest.mark.full
def test_every_step_is_followed_by_an_exam_where_that_is_asked_for(school: School) -> None:
    exam = 'exam={target: {benchmark: arithmetic, levels: ["1"], problems: 20}}'
    settings = (*TWICE, "lessons.examine=true", exam)
    engine = ExaminedEngine(school.student, SCRIPT)
    folder, candidate = school.study("examined", engine, *settings)
    assert engine.sat == [noted(folder, place) for place in CHAIN]
    assert sorted(place.parent.name for place in folder.glob("evaluate/*/manifest.json")) == [
        f"step-{number}" for number in (1, 2, 3, 4)
    ]
    again = ExaminedEngine(school.student, [])
    assert school.study("examined", again, *settings) == (folder, candidate)
    assert again.sat == []  # what is committed is not sat again


@pytest.mark.full
def test_on_policy_distillation_after_grpo(school: School, teacher: Path) -> None:
    """The student's own completions; a teacher that reads the same tokens credits each of them."""
    order = ("stages=[distill, {grpo: 1}, {on_policy: 3}]", f"on_policy.teacher={teacher}", "grpo.group_size=8")
    engine = TinyEngine()
    folder, candidate = school.study("taught", engine, *order, teacher=teacher)
    figures = round_metrics(folder)
    assert ["teacher_kl" in one for one in figures] == [False, True, True, True]
    taught = [one["teacher_kl"] for one in figures[1:]]
    assert taught[2] < taught[0]
    assert [one["useful_groups"] for one in figures[1:]] == [4, 4, 4]
    assert [one["refills"] for one in figures[1:]] == [0, 0, 0]
    assert all("verdicts/wrong" in one or "verdicts/no_answer" in one for one in figures)
    assert candidate.name == noted(folder, "round-04/checkpoint")
    shutil.rmtree(folder / "round-04" / "credit")
    shutil.rmtree(folder / "round-04" / "checkpoint")
    assert school.study("taught", TinyEngine(), *order, teacher=teacher) == (folder, candidate)
