"""A teacher is queried for the problems that the student never solved, and for none of the exam."""

import json
from pathlib import Path
from typing import Any

from conf.sections.lessons import EndpointConfig, TeacherConfig
from tasks.distillation.query_teacher import ask_teacher
from tasks.journal.tables import TRACES
from tasks.tables import read_table
from tests.models.support.chat_server import Reply, chat_server, said
from tests.tasks.doubles.tables import RIGHT, WRONG, run_stage, write_round


def query(
    tmp_path: Path, url: str, name: str = "ask", *, upto: int = 0, date: str = "2026-11-20", **changes: Any
) -> tuple[list[str], dict[str, Any]]:
    """Run the stage after `upto` of tonight's rounds; return the traces and `asked.json`."""
    done = run_stage(
        ask_teacher,
        tmp_path / name,
        config=TeacherConfig(endpoint=EndpointConfig(base_url=url, model="wise"), **changes),
        exam_questions=("Is this one of the exam?",),
        model="starter",
        scores=(),
        upto=upto,
        date=date,
        night=tmp_path / "nights" / date,
        cache=tmp_path / "teacher",
    )
    table: Any = read_table(done.folder / "traces.parquet", TRACES)
    assert set(table.teacher) <= {"wise"}
    traces = [f"{json.loads(row.messages)[0]['content']}: {row.response}" for row in table.itertuples()]
    return traces, done.read_json("asked.json")


def answer(request: dict[str, Any]) -> Reply:
    return said("best" if request["temperature"] == 0 else "other")


def test_unsolved_problems_most_attempts_first(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-18/round-01", {"once": [WRONG], "often": [WRONG] * 3, "solved": [WRONG, RIGHT]})
    write_round(nights / "2026-11-19/round-01", {"often": [WRONG], "some": [WRONG] * 3, "other": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-01", {"tonight": [WRONG] * 9})
    with chat_server(answer) as server:
        traces, outcome = query(tmp_path, server.url, problems=3, answers=2)
        assert traces == [f"{name}: {which}" for name in ("often", "some", "other") for which in ("best", "other")]
        assert outcome["problems"] == 3
        assert (outcome["asked"], outcome["answered"], outcome["cached"], outcome["tokens"]) == (6, 6, 0, 180)


def test_answers_of_earlier_nights_are_reused_and_leave_room_for_other_problems(tmp_path: Path) -> None:
    write_round(tmp_path / "nights/2026-11-19/round-01", {name: [WRONG] * (9 - n) for n, name in enumerate("abcde")})
    with chat_server(answer) as server:
        for name, requests in (("tonight", 2), ("resumed", 0)):
            traces, outcome = query(tmp_path, server.url, name, problems=2, answers=1)
            assert traces == ["a: best", "b: best"]
            assert (outcome["asked"], outcome["cached"]) == (requests, 2 - requests)
        traces, outcome = query(tmp_path, server.url, "tomorrow", date="2026-11-21", problems=2, answers=1)
        assert traces == ["a: best", "b: best", "c: best", "d: best"]
        assert (outcome["asked"], outcome["cached"]) == (2, 2)


def test_only_tonights_rounds_before_the_lesson_count(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-19/round-01", {"solved tonight": [WRONG] * 5, "never": [WRONG]})
    write_round(nights / "2026-11-20/round-01", {"solved tonight": [RIGHT], "new": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-02", {"later": [WRONG] * 9, "never": [RIGHT]})
    with chat_server(answer) as server:
        traces, _ = query(tmp_path, server.url, upto=1, answers=1)
    assert traces == ["new: best", "never: best"]


def test_a_failing_teacher_costs_only_its_answers(tmp_path: Path) -> None:
    write_round(tmp_path / "nights/2026-11-19/round-01", {"one": [WRONG]})
    with chat_server(lambda request: Reply(b"<html>", kind="text/html")) as server:
        traces, outcome = query(tmp_path, server.url, answers=1)
    assert (traces, outcome["answered"], outcome["failed"]) == ([], 0, {"no chat completion": 1})
