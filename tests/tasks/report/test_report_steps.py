"""The report's table of the night's parts: in the order of `stages`, with the exam before and after each."""

import json
import shutil
from pathlib import Path
from typing import Any

from tasks.incidents import end_early
from tasks.report.lessons import Lesson, lesson_figures, step_lessons
from tasks.report.page import render
from tasks.stage import commit
from tests.tasks.night_folder import TARGET, write_night
from tests.tasks.report.test_report_lessons import exam, lesson

ORDER = "stages: [{grpo: 2}, distill, lessons, self_distill, {on_policy: 1}, {grpo: 1}, distill]\n"


def traces(folder: Path, losses: list[float], **counts: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps([{"step": n, "loss": loss} for n, loss in enumerate(losses, 1)]))
    commit(folder, folder.name, {}, 1.0)


def a_round(night: Path, number: int, groups: int, useful: int) -> None:
    folder = night / f"round-{number:02d}" / "checkpoint"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps({"groups": groups, "useful_groups": useful, "reward": 0.5}))
    commit(folder, "checkpoint", {}, 1.0)


def solved(count: int) -> list[bool | None]:
    """An exam's answers, so many of ten of them right."""
    return [place < count for place in range(10)]


def a_full_day(night: Path) -> None:
    """The champion solves 1 of 10; rounds, lessons and the rest each one or two more, the teacher's round one less."""
    (night / "config.yaml").write_text(f"{ORDER}grpo: {{rounds: 9}}\n")
    for number, (groups, useful) in {1: (16, 2), 2: (16, 5), 3: (16, 16), 4: (20, 9)}.items():
        a_round(night, number, groups, useful)
    traces(night / "distill", [2.0, 1.0], kept=90, dropped=4, too_long=1, unknown=3)
    lesson(night, "corrections", {"lines": 9, "used": 9}, [1.5, 1.4])
    lesson(night, "words", {"lines": 3, "used": 3}, [3.0])
    traces(night / "self_distill", [], dropped=1)
    traces(night / "distill-2", [0.9, 0.8], kept=5)
    sat = {"evaluate/champion": 1, "evaluate/step-1": 2, "evaluate/step-2": 4, "lessons/evaluate": 4}
    sat |= {"lessons/corrections/evaluate": 5, "lessons/words/evaluate": 5, "evaluate/step-5": 4, "evaluate/step-6": 6}
    for place, count in sat.items():
        exam(night / place, solved(count))


def test_each_part_in_its_order_and_its_exam_held_against_the_one_before(tmp_path: Path) -> None:
    a_full_day(tmp_path)
    assert step_lessons(tmp_path, TARGET) == [
        Lesson("rounds 1 to 2", 32, 7, {}, None, (0.1, 0.2)),
        Lesson("worked solutions", 98, 93, {"dropped": 4, "too long": 1}, (2.0, 1.0), (0.2, 0.4)),
        Lesson("corrections", 9, 9, {}, (1.5, 1.4), (0.4, 0.5)),
        Lesson("words", 3, 3, {}, (3.0, 3.0), (0.5, 0.5)),
        Lesson("its own answers", 1, 0, {"dropped": 1}, None, None),
        Lesson("on-policy round 3", 16, 16, {}, None, (0.5, 0.4)),
        Lesson("round 4", 20, 9, {}, None, (0.4, 0.6)),
        Lesson("worked solutions 2", 5, 5, {}, (0.9, 0.8), None),
    ]


def test_what_an_exam_that_was_not_sat_would_have_told_is_not_told_of_the_next_part(tmp_path: Path) -> None:
    a_full_day(tmp_path)
    shutil.rmtree(tmp_path / "lessons" / "words" / "evaluate")
    shutil.rmtree(tmp_path / "evaluate" / "step-1")
    found = {one.channel: one.exam for one in step_lessons(tmp_path, TARGET)}
    assert found["worked solutions"] is None  # with what the rounds did
    assert found["corrections"] == (0.4, 0.5)
    assert found["words"] is None
    assert "on-policy round 3" not in found
    assert found["round 4"] == (0.4, 0.6)


def test_a_lesson_that_the_nights_end_undid_is_not_told(tmp_path: Path) -> None:
    a_full_day(tmp_path)
    end_early(tmp_path, 2, "The night ended its rounds: its hours are over.", 2)
    assert [one.channel for one in step_lessons(tmp_path, TARGET)] == ["rounds 1 to 2", "worked solutions"]


def test_without_exams_the_rounds_are_left_to_their_own_pictures(tmp_path: Path) -> None:
    a_round(tmp_path, 1, 16, 2)
    traces(tmp_path / "distill", [2.0], kept=3)
    assert step_lessons(tmp_path, TARGET) == [Lesson("worked solutions", 3, 3, {}, (2.0, 2.0), None)]
    assert step_lessons(tmp_path / "nothing", TARGET) == []


def test_a_night_that_ended_early_has_the_rounds_that_there_were(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("stages: [{grpo: 5}]\n")
    a_round(tmp_path, 1, 16, 2)
    a_round(tmp_path, 2, 16, 3)
    for place, count in {"champion": 1, "step-1": 3}.items():
        exam(tmp_path / "evaluate" / place, solved(count))
    assert step_lessons(tmp_path, TARGET) == [Lesson("rounds 1 to 2", 32, 5, {}, None, (0.1, 0.3))]


def test_mlflow_takes_the_names_of_all_parts(tmp_path: Path) -> None:
    from mlflow.utils.validation import _validate_metric_name

    a_full_day(tmp_path)
    figures = lesson_figures(step_lessons(tmp_path, TARGET))
    assert figures["lessons/on-policy round 3/exam_after"] == 0.4
    for name in figures:
        _validate_metric_name(name)


def whole_day(night: Path) -> dict[str, Any]:
    """A night with everything in it: its summary."""
    summary = write_night(night)
    (night / "config.yaml").write_text("stages: [distill, lessons, grpo]\ngrpo: {rounds: 3}\n")
    lesson(night, "corrections", {"lines": 9, "used": 7, "too_long": 2}, [1.5, 1.4])
    exam(night / "lessons" / "evaluate", solved(4))
    exam(night / "lessons" / "corrections" / "evaluate", solved(5))
    exam(night / "evaluate" / "step-3", solved(8))
    return summary


def test_the_report_of_a_full_day_shows_each_parts_effect(tmp_path: Path) -> None:
    page = render(tmp_path, whole_day(tmp_path))
    assert "What each part taught" in page
    for told in ("worked solutions<small>2 dropped</small>", "corrections<small>2 too long</small>", "rounds 1 to 3"):
        assert told in page
    for told in ("0.400 → 0.500", "0.500 → 0.800"):
        assert told in page
    assert "No reward model served (40 picks)" in page
