"""Which of its own answers the student learns again."""

import json
from pathlib import Path

from tasks.distillation.trace_sources import own_answers
from tasks.journal.tables import TRACES
from tasks.tables import read_table
from tests.tasks.doubles.tables import RIGHT, WRONG, run_stage, write_round


def answers(tmp_path: Path, upto: int = 99, per_problem: int = 4) -> list[tuple[str, str]]:
    """Return questions and answers that the stage writes on 2026-11-20."""
    nights = tmp_path / "nights"
    done = run_stage(
        own_answers,
        tmp_path / f"answers-{upto}-{per_problem}",
        model="starter",
        scores=(),
        upto=upto,
        per_problem=per_problem,
        date="2026-11-20",
        night=nights / "2026-11-20",
        nights=nights,
    )
    table = read_table(done.folder / "traces.parquet", TRACES)
    assert set(table.teacher) <= {"itself"}
    questions = [json.loads(messages)[0]["content"] for messages in table.messages]
    return list(zip(questions, table.response, strict=True))


def test_correct_answers_to_hard_problems_the_shortest_first(tmp_path: Path) -> None:
    attempts = {
        "hard": [("a longer way", 1.0), ("short", 1.0), ("short", 1.0), ("b", 1.0), *[WRONG] * 5],
        "even": [RIGHT, WRONG],
        "never": [WRONG] * 3,
        "ungraded": [RIGHT, ("?", None), ("?", None)],
    }
    write_round(tmp_path / "nights/2026-11-20/round-01", attempts)
    assert answers(tmp_path) == [("hard", "b"), ("hard", "short"), ("hard", "a longer way")]
    assert answers(tmp_path, per_problem=2) == [("hard", "b"), ("hard", "short")]


def test_attempts_of_rounds_refills_and_earlier_nights_are_added_up(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-18/round-02", {"one": [("old", 1.0)]})
    write_round(nights / "2026-11-20/round-01", {"one": [WRONG] * 2, "two": [RIGHT]})
    write_round(nights / "2026-11-20/round-02/refill-1", {"two": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-10", {"one": [("later", 1.0)]})
    write_round(nights / "2026-11-21/round-01", {"one": [("tomorrow", 1.0)]})
    assert answers(tmp_path) == [("two", "right")]
    assert answers(tmp_path, upto=2) == [("one", "old"), ("two", "right")]
    assert answers(tmp_path, upto=1) == [("one", "old")]
