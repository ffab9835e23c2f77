"""The quizzes between rounds."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.monitor import Monitor
from flows.training.quizzes import Quizzes, is_quizzed, run_quiz
from tasks.tables import EVALUATIONS
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import write_stage


@pytest.mark.usefixtures("prefect_server")
def test_a_committed_quiz_is_not_run_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    checkpoint = write_student(home.checkpoints / "cafe42")
    night = Night(home, "2026-11-20", load_night(STARTER, ["engine.max_model_len=4096"]))
    engine = TableEngine(checkpoint, {})
    night.engine.end()
    night.engine = engine
    quiz = run_quiz(night, "round-05/quiz", checkpoint, (), 4)
    shutil.rmtree(checkpoint)  # removed when later rounds took its place
    assert run_quiz(night, "round-05/quiz", checkpoint, (), 4) == quiz
    assert engine.calls == 1
    night.trainer.end()


@pytest.mark.usefixtures("prefect_server")
def test_neighbours_share_a_quiz_and_every_quiz_asks_the_same(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first, second = (write_student(home.checkpoints / name) for name in ("cafe42", "f00d42"))
    settings = ("lessons.quiz_problems=3", "engine.max_model_len=4096")
    night = Night(home, "2026-11-20", load_night(STARTER, settings))
    engine = TableEngine(first, {})
    night.engine.end()
    night.engine = engine
    quizzes = Quizzes(night, ())
    start = quizzes.ask("start", first)
    assert quizzes.ask("distill-before", first) == start
    asked = engine.asked
    after = quizzes.ask_if_possible("distill", second)
    assert (engine.calls, engine.asked) == (2, asked)
    assert quizzes.of({"start": first, "end": second, "nowhere": tmp_path}) == {"start": start, "end": after}
    assert sorted(folder.name for folder in (night.folder / "quiz").iterdir()) == ["distill", "start"]
    third = write_student(home.checkpoints / "beef42")
    write_stage(night.folder / "decide", {})
    assert quizzes.ask_if_possible("end", third) is None  # the night has decided without it
    assert quizzes.ask_if_possible("distill", second) == after
    none = Night(home, "2026-11-21", load_night(STARTER, ["lessons.quiz_problems=0"]))
    assert Quizzes(none, ()).ask("start", first) is None
    for each in (night, none):
        each.trainer.end()


def test_a_quiz_without_graded_answers_has_no_accuracy(tmp_path: Path) -> None:
    monitor = Monitor.__new__(Monitor)
    monitor.quizzes = {}
    row = {"policy_digest": "p", "benchmark": "own", "problem_id": "1", "sample": 0, "verdict": "grader_failed"}
    row |= {"question": "?", "text": "", "tokens": 0, "finish_reason": "stop"}
    mixed = [row, row | {"correct": True}, row | {"correct": False}]
    expected: list[tuple[list[dict[str, Any]], float | None]] = [([], None), ([row], None), (mixed, 0.5)]
    for number, (rows, accuracy) in enumerate(expected):
        assert (
            monitor.add_quiz(number, write_stage(tmp_path / str(number), {"evaluations": (EVALUATIONS, rows)}))
            == accuracy
        )
    assert monitor.quizzes == {0: (0, 0), 1: (0, 0), 2: (1, 2)}


def test_quizzes_come_every_so_many_rounds() -> None:
    config = load_night(STARTER, ["grpo.quiz_every_rounds=5"])
    assert [number for number in range(1, 23) if is_quizzed(config, number)] == [5, 10, 15, 20]
    assert not is_quizzed(load_night(STARTER, ["grpo.quiz_every_rounds=0"]), 5)
