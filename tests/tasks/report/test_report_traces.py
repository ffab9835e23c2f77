"""What the report says of worked solutions."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.report.page import render
from tasks.report.sections import distilled, trace_remarks, trace_sources
from tests.tasks.night_folder import write_night

ASKED: dict[str, Any] = {
    "teacher": "wise",
    "problems": 5,
    "questions": 10,
    "asked": 7,
    "cached": 2,
    "answered": 6,
    "failed": {"HTTP 500": 3},
    "stopped": "HTTP 500",
    "tokens": 900,
    "usd": 0.0123,
}
ROW = {"unknown": 0, "dropped": 0, "unreadable": 0, "exam": 0, "too_long": 0, "duplicate": 0, "surplus": 0}


def commit_files(folder: Path, files: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in {**files, "manifest.json": {"seconds": 1.0}}.items():
        (folder / name).write_text(json.dumps(content))


def test_a_table_by_source_and_a_line_each(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    assert trace_sources(tmp_path) == []
    assert trace_remarks(tmp_path) == []
    sources = [
        {"teacher": "me", "source": "2026-11-20.jsonl", "kept": 190, **ROW, "dropped": 2},
        {"teacher": "<b>wise</b>", "source": "asked by night", "kept": 6, **ROW},
    ]
    hits = [{"question": "What is 2 + 2?", "match": kind} for kind in ("exact", "near")]
    commit_files(tmp_path / "distill", {"sources.json": sources, "contamination.json": hits})
    commit_files(
        tmp_path / "self_distill", {"sources.json": [{"teacher": "itself", "source": "own", "kept": 3, **ROW}]}
    )
    commit_files(tmp_path / "ask_teacher", {"asked.json": ASKED})
    commit_files(tmp_path / "import_traces", {})
    bad = pd.DataFrame([{"file": "some.jsonl", "line": 7, "reason": "not JSON"}])
    bad.to_parquet(tmp_path / "import_traces" / "quarantine.parquet")
    page = render(tmp_path, summary)
    assert '<th scope="col">kept</th><th scope="col">dropped</th></tr>' in page
    assert '<th scope="row">me<small>2026-11-20.jsonl</small></th><td>190</td><td>2</td></tr>' in page
    assert "&lt;b&gt;wise&lt;/b&gt;<small>asked by night</small></th><td>6</td><td>0</td>" in page
    assert '<th scope="row">itself<small>own</small></th><td>3</td><td>0</td></tr>' in page
    assert "Rows of files that are no worked solutions: 1; the first: some.jsonl:7: not JSON." in page
    assert "because they ask problems of the exam: 2, 1 of them nearly and not word for word" in page
    assert (
        "The teacher wise answered 6 of 10 questions about 5 problems (2 of them earlier), for 900 tokens and "
        "0.0123 USD; without an answer: 3 × HTTP 500; it was not asked any further: HTTP 500."
    ) in page


def test_a_teacher_that_was_asked_nothing(tmp_path: Path) -> None:
    commit_files(tmp_path / "ask_teacher", {"asked.json": ASKED | {"problems": 0}})
    (line,) = trace_remarks(tmp_path)
    assert line.startswith("The teacher wise was asked nothing: no problem")


def test_what_a_second_lesson_reads_again_is_told_once(tmp_path: Path) -> None:
    day, other = ({"teacher": "me", "source": "2026-11-20.jsonl", **ROW, "kept": n, "later": 9 - n} for n in (6, 7))
    first, second = ({"teacher": "wise", "source": "asked by night", "kept": kept, **ROW} for kept in (6, 2))
    hit = {"question": "What is 2 + 2?", "match": "near"}
    commit_files(tmp_path / "distill", {"sources.json": [day, first], "contamination.json": [hit, hit]})
    commit_files(tmp_path / "distill-2", {"sources.json": [other, second], "contamination.json": [hit, hit]})
    assert trace_sources(tmp_path) == [day, first, second]
    assert "problems of the exam: 2, 2 of them nearly" in trace_remarks(tmp_path)[0]


def test_what_a_lesson_left_out_is_all_that_it_neither_learnt_nor_had_no_room_for() -> None:
    counts = {"kept": 5, "unknown": 4, "later": 3, "dropped": 2, "exam": 1, "duplicate": 1}
    assert distilled(counts) == counts | {"left_out": 4}
    assert distilled(None) is None
