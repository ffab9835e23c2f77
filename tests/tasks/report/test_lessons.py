"""The report's table of what each part of the night taught."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from models.lessons.pace import FixedSteps
from tasks.monitoring.incidents import end_early
from tasks.report.lessons import Lesson, lessons_of
from tasks.tables import EVALUATIONS
from tests.tasks.doubles.exam import row
from tests.tasks.doubles.night import write_config
from tests.tasks.doubles.tables import write_stage

ORDER = 'stages=[{"grpo": 2}, "distill", "lessons", "self_distill", {"self_play": 1}, {"grpo": 1}, "distill"]'


def write_lesson(folder: Path, counts: dict[str, int], losses: list[float]) -> None:
    write_stage(folder, counts=counts, curve=[{"step": n, "loss": loss} for n, loss in enumerate(losses, 1)])


def write_quizzes(night: Path, **solved: int) -> None:
    """Quizzes of ten graded answers and one that was not, in this order."""
    for at, (name, right) in enumerate(solved.items()):
        folder = night / "quiz" / name.replace("_", "-")
        verdicts = [*("correct" if n < right else "wrong" for n in range(10)), "grader_failed"]
        write_stage(folder, {"evaluations": (EVALUATIONS, [row(str(n), each) for n, each in enumerate(verdicts)])})
        os.utime(folder / "manifest.json", (at, at))


@pytest.fixture
def full_day(tmp_path: Path) -> Path:
    """A night whose student solves 1 of 10 at its start; each part adds one or two, the self-play round loses one."""
    write_config(tmp_path, ORDER)
    for number, (groups, useful) in {1: (16, 2), 2: (16, 5), 3: (16, 16), 4: (20, 9)}.items():
        metrics = {"groups": groups, "useful_groups": useful, "reward": 0.5}
        write_stage(tmp_path / f"round-{number:02d}" / "checkpoint", metrics=metrics)
    write_lesson(tmp_path / "distill", {"kept": 90, "dropped": 4, "too_long": 1, "unknown": 3}, [2.0, 1.0])
    fixed = FixedSteps(planned=48, steps=24, seconds_a_step=11.8)
    (tmp_path / "distill" / "pace.json").write_text(json.dumps(asdict(fixed)))
    write_lesson(tmp_path / "lessons/corrections", {"lines": 9, "used": 7, "exam": 1, "too_long": 1}, [1.5, 1.4])
    write_lesson(tmp_path / "lessons/words", {"lines": 2, "used": 0, "too_short": 2}, [])
    write_lesson(tmp_path / "lessons/feedback", {"lines": 0, "used": 0}, [])
    write_lesson(tmp_path / "lessons/picks", {"lines": 9, "used": 9, "later": 5}, [0.7])
    write_lesson(tmp_path / "self_distill", {"dropped": 1}, [])
    write_lesson(tmp_path / "distill-2", {"kept": 5}, [0.9, 0.8])
    write_quizzes(tmp_path, start=1, rounds=2, distill=4, lessons=5, rounds_2=4, rounds_3=6)
    return tmp_path


def test_each_part_in_its_order_with_the_quizzes_before_and_after(full_day: Path) -> None:
    left_out = ["1 in the exam", "1 too long"]
    pace = "24 of 48 steps: this machine needs 11.8 s a step"
    assert lessons_of(full_day) == [
        Lesson("rounds 1 to 2", 32, 7, [], None, (0.1, 0.2)),
        Lesson("worked solutions", 98, 93, [pace, "4 with a wrong answer", "1 too long"], (2.0, 1.0), (0.2, 0.4)),
        Lesson("corrections", 9, 7, left_out, (1.5, 1.4), None),
        Lesson("words", 2, 0, ["2 too short"], None, None),
        Lesson("picks", 9, 9, ["5 left for later nights"], (0.7, 0.7), (0.4, 0.5)),  # the quiz after all channels
        Lesson("its own answers", 1, 0, ["1 with a wrong answer"], None, None),
        Lesson("self-play round 3", 16, 16, [], None, (0.5, 0.4)),
        Lesson("round 4", 20, 9, [], None, (0.4, 0.6)),
        Lesson("worked solutions 2", 5, 5, [], (0.9, 0.8), None),
    ]


def test_after_a_lesson_that_was_taken_back_the_next_begins_where_it_began(full_day: Path) -> None:
    write_stage(full_day / "distill_check" / "verdict", outcome={"outcome": "taken_back"})
    found = {lesson.channel: lesson.quiz for lesson in lessons_of(full_day)}
    assert (found["worked solutions"], found["picks"]) == ((0.2, 0.4), (0.2, 0.5))


def test_what_an_early_end_undid_is_left_out(full_day: Path) -> None:
    end_early(full_day, 2, "Training stopped after 2 of 3 rounds: time ran out.", 2)
    assert [lesson.channel for lesson in lessons_of(full_day)] == ["rounds 1 to 2", "worked solutions"]
