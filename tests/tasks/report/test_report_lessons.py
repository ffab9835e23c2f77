"""The report's table of the owner's channels."""

import json
from pathlib import Path
from typing import Any

from tasks.report.lessons import Lesson, channel_lessons, lesson_figures
from tasks.report.page import render
from tasks.stage import commit
from tasks.tables import EVALUATIONS, write_table
from tests.tasks.night_folder import TARGET, write_night


def lesson(night: Path, channel: str, counts: dict[str, int], losses: list[float]) -> None:
    folder = night / "lessons" / channel
    folder.mkdir(parents=True)
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps([{"step": n, "loss": loss} for n, loss in enumerate(losses, 1)]))
    commit(folder, channel, {}, 1.0)


def exam(folder: Path, answers: list[bool | None]) -> None:
    folder.mkdir(parents=True)
    other = {"policy_digest": "x", "sample": 0, "question": "?", "text": "", "tokens": 1, "finish_reason": "stop"}
    rows: list[dict[str, Any]] = [
        {"benchmark": benchmark, "problem_id": str(n), "correct": right, "verdict": "correct", "level": None} | other
        for benchmark, own in ((TARGET, answers), ("guard", [False] * 9))
        for n, right in enumerate(own)
    ]
    write_table(folder / "evaluations.parquet", EVALUATIONS, rows)
    commit(folder, "evaluate", {}, 1.0)


def a_day(night: Path) -> None:
    lesson(night, "corrections", {"lines": 9, "used": 7, "exam": 1, "too_long": 1}, [2.0, 1.5, 1.0])
    lesson(night, "words", {"lines": 2, "used": 0, "exam": 0, "too_long": 0, "too_short": 2}, [])
    lesson(night, "feedback", {"lines": 0, "used": 0, "exam": 0, "too_long": 0}, [])
    lesson(night, "picks", {"lines": 4, "used": 4, "exam": 0, "too_long": 0}, [0.7])
    exam(night / "lessons" / "evaluate", [True, False, False, False])
    exam(night / "lessons" / "corrections" / "evaluate", [True, True, False, False, None])
    exam(night / "lessons" / "picks" / "evaluate", [True, True, True, False])


def test_each_channel_with_lines_is_told_and_its_exam_is_held_against_the_one_before(tmp_path: Path) -> None:
    a_day(tmp_path)
    left_out = {"that ask an exam question": 1, "too long": 1}
    assert channel_lessons(tmp_path, TARGET) == [
        Lesson("corrections", 9, 7, left_out, (2.0, 1.0), (0.25, 0.5)),
        Lesson("words", 2, 0, {"too short": 2}, None, None),
        Lesson("picks", 4, 4, {}, (0.7, 0.7), (0.5, 0.75)),
    ]


def test_the_figures_for_mlflow() -> None:
    told = [
        Lesson("words", 2, 0, {"too short": 2}, None, None),
        Lesson("picks", 4, 4, {}, (0.7, 0.6), (0.5, 0.75)),
    ]
    assert lesson_figures(told) == {
        "lessons/words/lines": 2,
        "lessons/words/used": 0,
        "lessons/picks/lines": 4,
        "lessons/picks/used": 4,
        "lessons/picks/loss_first": 0.7,
        "lessons/picks/loss_last": 0.6,
        "lessons/picks/exam_before": 0.5,
        "lessons/picks/exam_after": 0.75,
    }
    assert lesson_figures([]) == {}


def test_without_exams_only_they_are_missing(tmp_path: Path) -> None:
    lesson(tmp_path, "words", {"lines": 2, "used": 2}, [3.0])
    assert channel_lessons(tmp_path, TARGET) == [Lesson("words", 2, 2, {}, (3.0, 3.0), None)]
    assert channel_lessons(tmp_path / "nothing", TARGET) == []


def test_the_report_has_the_table_where_there_were_lines(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    assert "corrections" not in render(tmp_path, summary)
    a_day(tmp_path)
    page = render(tmp_path, summary)
    assert "What each part taught" in page
    for told in ("2.000 → 1.000", "0.250 → 0.500", "<small>1 too long</small>", "0.500 → 0.750"):
        assert told in page
    assert "feedback" not in page
