"""The quizzes between rounds, and before and after lessons: what made the student worse is taken back."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.monitor import Monitor
from flows.training.quizzes import Quizzes, is_quizzed, run_quiz
from models.hf.checkpoint import keep, write_lineage
from models.rollout import Rollout
from tasks.monitoring.incidents import incidents
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS
from tasks.training.take_back import p_worse
from tests.flows.rounds import School, ScriptedEngine, digest, rollout
from tests.rewards.datasets import write_gsm8k
from tests.tasks.doubles.exam import TableEngine, row
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import write_stage


@pytest.fixture
def night(tmp_path: Path, prefect_server: None) -> Iterator[Any]:
    """A night whose engine knows no answer; of its checkpoints, `cafe42` is there."""
    config = load_night(STARTER, ["lessons.quiz_problems=3", "engine.max_model_len=4096"])
    night = Night(Home(tmp_path), "2026-11-20", config)
    night.engine.end()
    night.exam_questions = ()
    night.engine = TableEngine(write_student(night.home.checkpoints / "cafe42"), {})
    yield night
    night.trainer.end()


def test_a_committed_quiz_is_not_run_again(night: Any) -> None:
    checkpoint = night.home.checkpoints / "cafe42"
    quiz = run_quiz(night, "round-05/quiz", checkpoint, 4)
    shutil.rmtree(checkpoint)  # removed when later rounds took its place
    assert run_quiz(night, "round-05/quiz", checkpoint, 4) == quiz
    assert night.engine.calls == 1


def test_neighbours_share_a_quiz_and_every_quiz_asks_the_same(night: Any, tmp_path: Path) -> None:
    home, quizzes = night.home, Quizzes(night)
    first, second, third = (home.checkpoints / name for name in ("cafe42", "f00d42", "beef42"))
    start = quizzes.ask("start", first)
    assert quizzes.ask("distill-before", first) == start
    asked = night.engine.asked
    after = quizzes.ask_if_possible("distill", write_student(second))
    assert (night.engine.calls, night.engine.asked) == (2, asked)
    assert quizzes.taken == {first: start, second: after}
    assert sorted(folder.name for folder in (night.folder / "quiz").iterdir()) == ["distill", "start"]
    write_stage(night.folder / "decide", {})
    assert quizzes.ask_if_possible("end", write_student(third)) is None  # the night has decided without it
    assert quizzes.ask_if_possible("distill", second) == after
    none = Night(home, "2026-11-21", load_night(STARTER, ["lessons.quiz_problems=0"]))
    assert Quizzes(none).ask("start", first) is None
    none.trainer.end()


def test_a_quiz_without_graded_answers_has_no_accuracy(tmp_path: Path) -> None:
    monitor = Monitor.__new__(Monitor)
    monitor.quizzes = {}
    row = {"policy_digest": "p", "benchmark": "own", "problem_id": "1", "sample": 0, "verdict": "grader_failed"}
    row |= {"question": "?", "text": "", "tokens": 0, "finish_reason": "stop"}
    mixed = [row, row | {"correct": True}, row | {"correct": False}]
    expected: list[tuple[list[dict[str, Any]], float | None]] = [([], None), ([row], None), (mixed, 0.5)]
    for number, (rows, accuracy) in enumerate(expected):
        quiz = write_stage(tmp_path / str(number), {"evaluations": (EVALUATIONS, rows)})
        assert monitor.add_quiz(number, quiz) == accuracy
    assert monitor.quizzes == {0: (0, 0), 1: (0, 0), 2: (1, 2)}


def test_quizzes_come_every_so_many_rounds() -> None:
    config = load_night(STARTER, ["grpo.quiz_every_rounds=5"])
    assert [number for number in range(1, 23) if is_quizzed(config, number)] == [5, 10, 15, 20]
    assert not is_quizzed(load_night(STARTER, ["grpo.quiz_every_rounds=0"]), 5)


# --- lessons and blocks of rounds that made a student worse are taken back

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
    source = write_gsm8k(school.root / "gsm8k-40", 40)
    return school.study(name, engine, *settings, QUIZ, f"exam={{target: {{benchmark: gsm8k, source: {source}}}}}")


QUIZZED = [([30, 25], "kept"), ([30, 24], "taken_back")]  # five lost and none won: p = 1/32
WORSE = "made the student worse (75% → 60% of 40 training problems) and was taken back."


@pytest.mark.parametrize(
    ("settings", "path", "check", "what"),
    [
        (["stages=[distill]"], "distill", "distill_check", "The lesson on worked solutions"),
        (["grpo.rounds=1", "grpo.refills=0"], "round-01/checkpoint", "merge_check", "The block of rounds"),
    ],
    ids=["lesson", "block"],
)
@pytest.mark.parametrize(("correct", "outcome"), QUIZZED)
def test_a_lesson_or_a_block_stays_by_the_quiz(
    trained: School, correct: list[int], outcome: str, settings: list[str], path: str, check: str, what: str
) -> None:
    engine = StudentEngine(trained.student, correct, [(1, 1, 1, 1)])
    folder, candidate = study(trained, f"{check}-{outcome}", engine, *settings)
    verdict = json.loads((folder / check / "verdict" / "outcome.json").read_text())
    made = digest(folder, path)
    assert (verdict["outcome"], verdict["problems"]) == (outcome, 40)
    assert verdict["accuracy"] == dict(zip(("before", "after"), [n / 40 for n in correct], strict=True))
    assert engine.examined == [trained.student.name, made]
    assert candidate.name == {"kept": made, "taken_back": trained.student.name}[outcome]
    assert [f"{what} {WORSE}" in incident for incident in incidents(folder)] == [True] * (outcome == "taken_back")
    idle = StudentEngine(trained.student, [])
    assert study(trained, f"{check}-{outcome}", idle, *settings)[1] == candidate  # committed: nothing is asked


def test_answers_that_could_not_be_graded_say_nothing_about_a_lesson(tmp_path: Path) -> None:
    """Six right answers that only the second quiz's grader fails on would else be p = 1/64."""
    for quiz, verdicts in (("before", [True] * 7), ("after", [None] * 6 + [True])):
        rows = [row(str(number), correct=correct) for number, correct in enumerate(verdicts)]
        write_stage(tmp_path / quiz, {"evaluations": (EVALUATIONS, rows)})
    before, after = (Artifact(folder=tmp_path / quiz, digest="") for quiz in ("before", "after"))
    assert p_worse(before, after) == 1.0
