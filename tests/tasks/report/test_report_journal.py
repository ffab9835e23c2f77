"""A person who wrote a bad line learns of it in the morning."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tasks.report.report import summarise
from tests.tasks.journal.test_freeze import freeze, journal, line, pick, words
from tests.tasks.night_folder import TARGET, write_night

DATE = "2026-11-20"
HEADING = "What each part taught"


def morning(home: Path, *lines: str) -> tuple[dict[str, Any], str, str]:
    """The summary, report.html and report.md after a day with these lines."""
    journal(home, *lines)
    night = freeze(home, DATE).folder.parent
    write_night(night)
    (night / "distill" / "manifest.json").unlink()  # nothing else is in the section
    decision = json.loads((night / "decide" / "decision.json").read_text()) | {"target": TARGET}
    summary = summarise(night, decision, 3, [], {})
    assert json.loads(json.dumps(summary)) == summary
    return summary, render(night, summary), render_markdown(summary, decision)


def test_refused_lines_are_shown_with_file_line_and_reason(tmp_path: Path) -> None:
    summary, page, short = morning(tmp_path, words("good"), words(" "), "<b>{", *(line("news"),) * 5)
    assert summary["journal"]["refused"] == 7
    assert [row["line"] for row in summary["journal"]["first"]] == [2, 3, 4, 5, 6]
    assert HEADING in page
    assert "<p>Lines of the journal that were refused, and taught nothing: 7.</p>" in page
    assert f"<li><code>{DATE}.jsonl:2</code>: words.text: is blank</li>" in page
    assert f"<li><code>{DATE}.jsonl:3</code>: Invalid JSON" in page
    assert page.count(f"<li><code>{DATE}.jsonl:") == 5
    assert "These are the first; <code>nightschool journal check FILE</code> names all." in page
    assert (
        "\n- Lines of the journal that were refused, and taught nothing: 7. "
        f"The first: {DATE}.jsonl:2: words.text: is blank\n"
    ) in short
    assert "never had" not in page + short


def test_what_a_line_says_is_text_and_not_the_whole_page(tmp_path: Path) -> None:
    summary, page, short = morning(tmp_path, line("<script>alert(1)</script>" + "x" * 9000))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;xxx" in page
    assert r"\<script>alert(1)\</script>xxx" in short
    assert "<script" not in page + short.replace(r"\<script", "")
    assert len(summary["journal"]["first"][0]["reason"]) == 201
    assert "x" * 200 not in page + short
    assert "These are the first" not in page


def test_picks_of_an_unknown_checkpoint_are_told_once(tmp_path: Path) -> None:
    _, page, short = morning(tmp_path, pick(["a", "b"], 0, "unheard-of"), pick(["a", "b"], 1, "imported"))
    told = "New picks of a checkpoint that this home has never had, which count all the same: 1."
    assert f"<p>{told}</p>" in page
    assert f"\n- {told}\n" in short
    assert "refused" not in page + short
    later = freeze(tmp_path, "2026-11-21")  # they are replayed
    assert later.figure("unknown_policies") == 0


@pytest.mark.parametrize("lines", [(), (words("good"),)])
def test_nothing_is_shown_where_there_is_nothing(tmp_path: Path, lines: tuple[str, ...]) -> None:
    summary, page, short = morning(tmp_path, *lines)
    assert summary["journal"] == {"refused": 0, "first": [], "unknown_policies": 0}
    for text in (HEADING, "refused", "never had"):
        assert text not in page + short
