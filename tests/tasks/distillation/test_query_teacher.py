"""A teacher is asked for what the student never solved, and for no problem of the exam."""

import json
import shutil
from pathlib import Path
from typing import Any

from conf.sections.lessons import TeacherConfig
from tasks.distillation.query_teacher import ask_teacher
from tasks.tables import TRACES, read_table
from tests.models.chat_server import Reply, chat_server, said
from tests.tasks.doubles.rounds import RIGHT, WRONG, write_round


def asked(
    tmp_path: Path, url: str, name: str = "ask", *, upto: int = 0, date: str = "2026-11-20", **changes: Any
) -> tuple[list[str], dict[str, Any]]:
    """`upto`: so many of tonight's rounds are over."""
    folder = tmp_path / name
    folder.mkdir()
    ask_teacher.write(
        folder,
        config=TeacherConfig(base_url=url, model="wise", retries=0, **changes),
        exam_questions=("Is this one of the exam?",),
        model="starter",
        scores=(),
        upto=upto,
        date=date,
        night=tmp_path / "nights" / date,
        nights=tmp_path / "nights",
        cache=tmp_path / "teacher",
    )
    table = read_table(folder / "traces.parquet", TRACES)
    assert set(table.teacher) <= {"wise"}
    traces = [f"{json.loads(row.messages)[0]['content']}: {row.response}" for row in table.itertuples()]  # pyright: ignore
    return traces, json.loads((folder / "asked.json").read_text())


def answer(request: dict[str, Any]) -> Reply:
    return said(f"{'best' if request['temperature'] == 0 else 'other'} answer to {request['messages'][0]['content']}")


def test_problems_never_solved_those_tried_most_first(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-18/round-01", {"once": [WRONG], "often": [WRONG] * 3, "solved": [WRONG, RIGHT]})
    write_round(nights / "2026-11-19/round-01", {"often": [WRONG], "some": [WRONG] * 3, "other": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-01", {"tonight": [WRONG] * 9})
    with chat_server(answer) as server:
        every, _ = asked(tmp_path, server.url, "every", answers=1)
        assert every == [f"{name}: best answer to {name}" for name in ("often", "some", "other", "once")]
    with chat_server(answer) as server:
        shutil.rmtree(tmp_path / "teacher")
        traces, outcome = asked(tmp_path, server.url, problems=3, answers=2)
        assert traces == [
            f"{name}: {which} answer to {name}" for name in ("often", "some", "other") for which in ("best", "other")
        ]
        assert outcome["problems"] == 3
        assert (outcome["asked"], outcome["answered"], outcome["cached"], outcome["tokens"]) == (6, 6, 0, 180)
        again, outcome = asked(tmp_path, server.url, "again", problems=3, answers=2)
        assert again == traces
        assert (outcome["asked"], outcome["cached"], len(server.requests)) == (0, 6, 6)


def test_what_an_earlier_night_was_told_takes_no_other_problems_place(tmp_path: Path) -> None:
    """The night itself, resumed, asks no more than it may; the next one has the old answers, and asks for others."""
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-19/round-01", {name: [WRONG] * (9 - place) for place, name in enumerate("abcde")})
    with chat_server(answer) as server:
        own = {"problems": 2, "answers": 1}
        told = [asked(tmp_path, server.url, name, **own)[0] for name in ("tonight", "resumed")]
        assert told == [[f"{name}: best answer to {name}" for name in "ab"]] * 2
        traces, outcome = asked(tmp_path, server.url, "tomorrow", date="2026-11-21", **own)
        assert traces == [f"{name}: best answer to {name}" for name in "abcd"]
        assert (outcome["asked"], outcome["cached"]) == (2, 2)


def test_tonights_rounds_before_the_lesson_count_and_those_after_it_do_not(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-19/round-01", {"solved tonight": [WRONG] * 5, "never": [WRONG]})
    write_round(nights / "2026-11-20/round-01", {"solved tonight": [RIGHT], "new": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-02", {"later": [WRONG] * 9, "never": [RIGHT]})
    with chat_server(answer) as server:
        traces, outcome = asked(tmp_path, server.url, upto=1, answers=1)
    assert traces == ["new: best answer to new", "never: best answer to never"]
    assert outcome["problems"] == 2


def test_problems_of_the_exam_are_never_asked(tmp_path: Path) -> None:
    question = "Is this one of the exam?"
    write_round(tmp_path / "nights/2026-11-19/round-01", {"one": [WRONG]}, question=question)
    with chat_server(answer) as server:
        traces, outcome = asked(tmp_path, server.url)
    assert (traces, outcome["problems"], server.requests) == ([], 0, [])


def test_a_first_night_asks_nothing(tmp_path: Path) -> None:
    traces, outcome = asked(tmp_path, "http://127.0.0.1:9/v1")
    assert (traces, outcome["problems"], outcome["stopped"]) == ([], 0, None)


def test_a_teacher_that_is_down_costs_a_line(tmp_path: Path) -> None:
    write_round(tmp_path / "nights/2026-11-19/round-01", {"one": [WRONG]})
    with chat_server(lambda request: Reply(b"<html>", 503, "text/html")) as server:
        traces, outcome = asked(tmp_path, server.url, answers=1)
    assert traces == []
    assert (outcome["answered"], outcome["failed"]) == (0, {"HTTP 503": 1})
    assert outcome["stopped"] is None  # one failure is not the end yet
    traces, outcome = asked(tmp_path, "http://127.0.0.1:9/v1", "down")
    assert outcome["stopped"] == "no connection"
