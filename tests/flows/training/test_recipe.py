"""Nights of several steps on the real stages, trainer, Prefect and MLflow: their order, and what interrupts them."""

import json
import shutil
from pathlib import Path

import pytest

from models.hf.checkpoint import base_of, parent_of
from tests.flows.rounds import DATE, School, ScriptedEngine, digest

SCRIPT = [(1, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1)]
TWICE = ("stages=[distill, {grpo: 1}, distill, {grpo: 1}]", "grpo.refills=0")

CHAIN = ("distill", "round-01/checkpoint", "distill-2", "round-02/checkpoint")

Finished = tuple[Path, Path]


@pytest.fixture(scope="module")
def finished(school: School) -> Finished:
    """A night that distils and practises twice."""
    return school.study("twice", ScriptedEngine(school.student, SCRIPT), *TWICE)


def test_each_step_goes_on_from_the_one_before(finished: Finished) -> None:
    folder, candidate = finished
    digests = [digest(folder, path) for path in CHAIN]
    assert len(set(digests)) == 4
    assert [parent_of(candidate.parent / digests[n]) for n in (1, 2, 3)] == digests[:3]
    assert candidate.name == digests[-1]
    assert sorted(file.parent.name for file in folder.glob("*/manifest.json")) == ["day", "distill", "distill-2"]
    assert [json.loads((folder / path / "curve.json").read_text())[-1]["step"] for path in CHAIN[::2]] == [2, 2]


LOST = {"after-the-first-block": ["distill-2", "round-02"], "in-the-second-block": ["round-02/checkpoint"]}


@pytest.mark.parametrize("when", LOST)
def test_a_night_killed_between_blocks_comes_to_the_same_bits(finished: Finished, school: School, when: str) -> None:
    folder, candidate = finished
    shutil.copytree(school.home("twice").root, school.root / when)
    home = school.home(when)
    for path in LOST[when]:
        shutil.rmtree(home.night(DATE) / path)
    shutil.rmtree(home.checkpoints / candidate.name)
    script = [SCRIPT[1]] if "round-02" in LOST[when] else []
    engine = ScriptedEngine(school.student, script)
    resumed, again = school.study(when, engine, *TWICE)
    assert len(engine.asked) == len(script)
    assert again.name == candidate.name
    assert digest(resumed, "distill-2") == digest(folder, "distill-2")


@pytest.mark.slow
def test_each_blocks_adapter_is_merged(school: School) -> None:
    engine = ScriptedEngine(school.student, SCRIPT)
    folder, candidate = school.study(
        "adapters", engine, "stages=[{grpo: 1}, distill, {grpo: 1}]", "grpo.refills=0", "lora={rank: 4, alpha: 8}"
    )
    assert candidate.name == digest(folder, "merge-2")
    first, second = (candidate.parent / digest(folder, f"round-0{number}/checkpoint") for number in (1, 2))
    assert parent_of(candidate.parent / digest(folder, "distill")) == digest(folder, "merge")
    assert (base_of(first).name, base_of(second).name) == (school.student.name, digest(folder, "distill"))
    assert base_of(candidate) == candidate


@pytest.mark.slow
def test_a_night_with_hours_goes_through_a_day_without_feedback(school: School) -> None:
    steps = ("stages=[distill, lessons, {grpo: 1}]", "grpo.refills=0", "budget_minutes=60")
    folder, candidate = school.study("quiet", ScriptedEngine(school.student, SCRIPT[:1]), *steps)
    assert digest(folder, "lessons/words") == digest(folder, "distill") == parent_of(candidate)
