"""The exam's sheet: what each of the three did beside being right."""

from pathlib import Path
from typing import Any

import pytest

from tasks.evaluation.statistics import wilson
from tasks.report.exam import exam_sheet
from tasks.report.page import render
from tasks.stage import commit
from tasks.tables import EVALUATIONS, write_table
from tests.tasks.night_folder import write_night

SAT = {"accuracy": 0.5, "low": 0.0, "high": 1.0, "n": 4}
SUMMARY = {"night": "2026-11-20", "benchmarks": {"math": {"champion": SAT, "distilled": None, "candidate": SAT}}}


def row(number: int, correct: bool | None, *, sample: int = 0, **other: Any) -> dict[str, Any]:
    fields = dict.fromkeys(EVALUATIONS.names)
    fields |= {"policy_digest": "x", "benchmark": "math", "problem_id": str(number), "sample": sample, "tokens": 10}
    fields |= {"verdict": "correct" if correct else "wrong", "question": "?", "text": "", "finish_reason": "stop"}
    return fields | {"correct": correct, "level": "1"} | other


def sit(night: Path, who: str, greedy: list[dict[str, Any]], sampled: list[dict[str, Any]]) -> None:
    folder = night / "evaluate" / who
    folder.mkdir(parents=True)
    write_table(folder / "evaluations.parquet", EVALUATIONS, greedy)
    write_table(folder / "samples.parquet", EVALUATIONS, sampled)
    commit(folder, "evaluate", {}, 1.0)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    greedy = [
        row(0, True),
        row(1, False, verdict="no_answer", tokens=64, finish_reason="length"),
        row(2, True, level="2", tokens=22),
        row(3, False, level="2", tokens=24),
    ]
    sit(tmp_path, "champion", greedy, [])
    sit(tmp_path, "candidate", greedy[:1], [row(0, n == 3, sample=n) for n in range(4)])
    return tmp_path


def test_the_sheet_is_that_of_the_tables(night: Path) -> None:
    sheet = exam_sheet(night)
    assert list(sheet.figures) == [("math", "champion"), ("math", "candidate")]
    own = sheet.figures["math", "champion"]
    assert (own.format_rate, own.truncation_rate, own.mean_tokens, own.pass_at) == (0.75, 0.25, 30.0, {})
    assert sheet.tries == (1, 2, 4)
    assert sheet.figures["math", "candidate"].pass_at == {1: 0.25, 2: 0.5, 4: 1.0}
    assert sheet.kinds == {
        ("math", "level 1"): {"champion": wilson(1, 2)},
        ("math", "level 2"): {"champion": wilson(1, 2)},
    }
    assert sheet.picks == {}


def test_the_page_shows_it_and_a_dash_for_what_nobody_measured(night: Path) -> None:
    page = render(night, SUMMARY)
    assert "<summary>Format, length, pass@k, levels and subjects</summary>" in page
    assert "<small>champion</small></th><td>75 %</td><td>25 %</td><td>30</td><td>–</td><td>–</td><td>–</td>" in page
    assert "<td>25 %</td><td>50 %</td><td>100 %</td>" in page
    assert (
        '<th scope="row">level 2<small>math</small></th><td>0.50<small>0.09–0.91, n = 2</small></td><td>–</td>' in page
    )


def test_a_night_of_an_earlier_version_has_no_sheet(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    assert not exam_sheet(tmp_path).figures
    assert "Format, length" not in render(tmp_path, summary)


def test_the_owners_picks_are_reported(night: Path) -> None:
    folder = night / "picks" / "candidate"
    folder.mkdir(parents=True)
    (folder / "ranking.json").write_text('{"right": [true, true, false, false, true]}')
    commit(folder, "rank_picks", {}, 1.0)
    page = " ".join(render(night, SUMMARY).split())
    assert "(reported, never deciding): candidate 60 % (23 to 88 %, n = 5)." in page
