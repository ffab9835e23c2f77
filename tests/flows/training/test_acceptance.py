"""Lessons and blocks of rounds that made a student worse are taken back."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.hf.checkpoint import keep, write_lineage
from models.rollout import Rollout
from tasks.monitoring.incidents import incidents
from tests.flows.rounds import School, ScriptedEngine, rollout, write_problems

QUIZ = "lessons.quiz_problems=40"


class StudentEngine(ScriptedEngine):
    """Of each checkpoint that it is asked for, in turn, it answers so many problems of a quiz correctly."""

    def __init__(self, student: Path, correct: Sequence[int], script: Sequence[Sequence[int]] = ()) -> None:
        super().__init__(student, script)
        self.correct = correct

    def sample(self, checkpoint: Path, config: Any, prompts: Any, size: int, **options: Any) -> list[list[Rollout]]:
        if options["temperature"]:
            return super().sample(checkpoint, config, prompts, size, **options)
        if checkpoint.name not in self.examined:
            self.examined.append(checkpoint.name)
        right = self.correct[self.examined.index(checkpoint.name)]
        asked = [self.tokenizer.decode(prompt).split("How many? ")[1].split()[0] for prompt in prompts]
        return [
            [rollout(n, 0, prompt, f"#### {number if n < right else -1}", checkpoint.name)]
            for n, (number, prompt) in enumerate(zip(asked, prompts, strict=True))
        ]


@pytest.fixture(scope="module")
def trained(school: School, tmp_path_factory: pytest.TempPathFactory) -> School:
    """Nights whose champion an earlier night has made."""
    root = tmp_path_factory.mktemp("trained")
    shutil.copytree(school.student, root / "draft")
    write_lineage(root / "draft", "0" * 20)
    return replace(school, root=root, student=keep(root / "draft", root / "students"))


def study(school: School, name: str, engine: ScriptedEngine, *settings: str) -> tuple[Path, Path]:
    source = write_problems(school.root / "gsm8k-40", 40)
    return school.study(name, engine, *settings, QUIZ, f"exam={{target: {{benchmark: gsm8k, source: {source}}}}}")


@pytest.mark.parametrize(
    ("correct", "outcome", "said"),
    [
        ([30, 25], "kept", None),  # p = 1/32
        ([30, 24], "taken_back", "made the student worse (75% → 60% of 40 training problems) and was taken back."),
    ],
)
def test_a_lesson_stays_by_the_quiz(trained: School, correct: list[int], outcome: str, said: str | None) -> None:
    engine = StudentEngine(trained.student, correct)
    folder, candidate = study(trained, outcome, engine, "stages=[distill]")
    verdict = json.loads((folder / "distill_check/verdict/outcome.json").read_text())
    lesson = (folder / "distill/checkpoint.txt").read_text()
    assert verdict["outcome"] == outcome
    assert verdict["problems"] == 40
    assert verdict["accuracy"] == dict(zip(("before", "after"), [n / 40 for n in correct], strict=True))
    assert engine.examined == [trained.student.name, lesson]
    assert {file.parent.name for file in folder.glob("quiz/*/manifest.json")} == {"start", "distill"}
    assert candidate.name == {"kept": lesson, "taken_back": trained.student.name}[outcome]
    assert len(incidents(folder)) == (said is not None)
    assert all(str(said) in incident for incident in incidents(folder))
    idle = StudentEngine(trained.student, [])
    assert study(trained, outcome, idle, "stages=[distill]")[1] == candidate  # committed: nothing is asked


@pytest.mark.parametrize(("correct", "outcome"), [([30, 25], "kept"), ([30, 24], "taken_back")])
def test_a_block_stays_by_the_quiz(trained: School, correct: list[int], outcome: str) -> None:
    engine = StudentEngine(trained.student, correct, [(1, 1, 1, 1)])
    folder, candidate = study(trained, f"block-{outcome}", engine, "grpo.rounds=1", "grpo.refills=0")
    trained_on = (folder / "round-01/checkpoint/checkpoint.txt").read_text()
    assert json.loads((folder / "merge_check/verdict/outcome.json").read_text())["outcome"] == outcome
    assert candidate.name == {"kept": trained_on, "taken_back": trained.student.name}[outcome]
    said = "The block of rounds made the student worse (75% → 60% of 40 training problems) and was taken back."
    assert [said in incident for incident in incidents(folder)] == ([] if outcome == "kept" else [True])
