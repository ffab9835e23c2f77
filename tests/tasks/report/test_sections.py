"""The report's paragraphs on the journal, the worked solutions, the reward model, the day, and the learned reward."""

import html
import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from models.lessons.preference_data import Pick
from models.lessons.ranking import rank
from tasks.journal.tables import QUARANTINE
from tasks.report.markdown import render_markdown, template
from tasks.report.page import render
from tasks.report.queries import round_metrics
from tasks.report.sections import day_sentences, journal_faults, remarks
from tests.tasks.doubles.night import Night
from tests.tasks.doubles.tables import write_stage

ASKED = {"teacher": "wise", "problems": 5, "questions": 10, "asked": 7, "cached": 2, "answered": 6, "tokens": 900}
REMARKS = [
    "Imported rows that are not worked solutions: 1. The first: a.jsonl:2: not JSON.",
    "Worked solutions of exam problems, left out: 3 (1 word for word, 2 nearly). The first: What is 2 + 2?",
    "The teacher wise answered 6 of 10 questions on 5 problems (2 from the cache) for 900 tokens. "
    "Without an answer: 3 × HTTP 500. It was asked no further: HTTP 500.",
]
USED = [
    "A reward model was used. Of 38 picks, 8 were held out; your choice is ranked first in 7 of them (88 %; "
    "95 % interval 47–100 %; chance 33 %).",
    "It ranks the longest answer first in 0 % of the held-out picks; you chose the longest in 12 %, the shortest in "
    "88 %.",
]


def write_quarantine(folder: Path, *reasons: str) -> None:
    """Refused lines, the first one on line 2."""
    rows = [{"file": "a.jsonl", "line": number, "reason": reason} for number, reason in enumerate(reasons, 2)]
    write_stage(folder, {"quarantine": (QUARANTINE, rows)})


def write_traces(night: Path) -> None:
    hits = [{"question": "What is 2 + 2?", "match": kind} for kind in ("exact", "near", "near")]
    write_stage(night / "distill", contamination=hits)
    write_stage(night / "distill-2", contamination=hits)  # reads the same source again
    write_stage(night / "ask_teacher", asked=ASKED | {"failed": {"HTTP 500": 3}, "stopped": "HTTP 500"})
    write_quarantine(night / "import_traces", "not JSON")


def fitted() -> dict[str, Any]:
    """The outcome of a model that prefers the shortest of three answers, which was chosen in seven picks of eight."""
    picks = [Pick((1,), ((2,), (3, 3), (4, 4, 4)), 2 if number == 7 else 0) for number in range(8)]
    found = {"serves": True, "reason": None, "picks": 38, "held_out": 8}
    return found | asdict(rank([[1.0, 0.0, -1.0]] * len(picks), picks))


def write_learned(night: Path, right: int) -> None:
    """A first round with a reward model, before which the student ranked so many of 20 picks right."""
    file = night / "round-01" / "checkpoint" / "metrics.json"
    figures = json.loads(file.read_text()) if file.exists() else {}
    write_stage(file.parent, metrics=figures | {"reward/learned": 0.5, "reward/learned_z": 0.0})
    write_stage(night / "rank_picks", ranking={"accuracy": right / 20, "right": [n < right for n in range(20)]})


def said(night: Path) -> list[str]:
    """The remarks of the page, paragraph by paragraph."""
    page = template("remarks.html").render(remarks(night))
    return [" ".join(html.unescape(text).split()) for text in re.findall(r'<p class="note">(.*?)</p>', page, re.S)]


def test_remarks_on_worked_solutions_and_their_teacher(tmp_path: Path) -> None:
    assert said(tmp_path) == []
    write_traces(tmp_path)
    assert said(tmp_path) == REMARKS
    write_stage(tmp_path / "ask_teacher", asked=ASKED | {"problems": 0, "failed": {}, "stopped": None})
    assert said(tmp_path)[-1].startswith("The teacher wise was not asked: there is no problem that")


def test_a_reward_model_that_was_used_or_refused(tmp_path: Path) -> None:
    write_stage(tmp_path / "fit_reward_model", outcome=fitted())
    assert said(tmp_path) == [" ".join(USED)]
    refused = fitted() | {"serves": False, "reason": "that may be chance (33%)"}
    write_stage(tmp_path / "fit_reward_model", outcome=refused)
    assert said(tmp_path) == [
        f"No reward model was used (38 picks and corrections): that may be chance (33%). {USED[1]}"
    ]
    few = {"serves": False, "reason": "fewer than 30 usable picks", "picks": 4, "held_out": 1}
    write_stage(tmp_path / "fit_reward_model", outcome=few)
    assert said(tmp_path) == ["No reward model was used (4 picks and corrections): fewer than 30 usable picks."]
    write_stage(tmp_path / "fit_reward_model", outcome=few | {"reason": ""})
    assert said(tmp_path) == []


def test_a_judge_that_stopped(tmp_path: Path) -> None:
    judged = {"judge": "wise", "serves": False, "groups": 9, "judged": 7, "order_flips": 0.25, "stopped": "HTTP 500"}
    accuracy = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 9}
    write_stage(tmp_path / "examine_judge", outcome={**judged, "chance": 0.25, "accuracy": accuracy})
    assert said(tmp_path) == [
        "The judge wise was not used: it did not prove itself. It ranks your choice first in 50 % of 9 held-out picks "
        "(95 % interval 20–80 %; chance 25 %). In 2 of them its orders disagreed, or a ranking was missing. Another "
        "order changed its best answer in 25 % of the cases. It stopped answering: HTTP 500."
    ]


@pytest.mark.parametrize(("right", "watched"), [(4, False), (5, True)])
def test_the_learned_reward_is_watched_from_five_picks_on(tmp_path: Path, right: int, watched: bool) -> None:
    write_learned(tmp_path, right)
    (sentence,) = said(tmp_path)
    assert sentence.startswith("A student can learn to please it without pleasing you")
    assert ("From round 1 on the learned reward" in sentence) is not watched
    table = round_metrics(tmp_path)
    assert table["ranked_first"].tolist() == pytest.approx([right / 20, math.nan], nan_ok=True)
    assert table["reward/learned"].tolist() == pytest.approx([math.nan, 0.5], nan_ok=True)


def test_all_of_it_is_on_the_page_as_text(own_night: Night, decision: dict[str, Any]) -> None:
    night, summary = own_night
    write_quarantine(night / "freeze_journal", "is blank", "<script>" + "x" * 9000, *["unknown kind"] * 5)
    write_traces(night)
    write_stage(night / "fit_reward_model", outcome=fitted())
    write_learned(night, 4)
    corrected = {"question": "Who?", "correction": "Archimedes.", "answer": "archimedes"}
    write_stage(night / "replay_day", day={"lessons": 3, "learned": 2})
    write_stage(night / "ask_again", answers=[corrected, corrected | {"answer": "An <owl>"}])
    summary |= {"journal": journal_faults(night), "day": day_sentences(night)}
    page = render(night, summary)
    day = (
        "The day copy learned 2 of 3 lessons. "
        "Asked again, the candidate gives your answer to 1 of 2 corrected questions."
    )
    for text in (*REMARKS, " ".join(USED), day):
        assert text in " ".join(html.unescape(page).split())
    assert "<p>Journal lines that were refused and taught nothing: 7.</p>" in page
    assert "<li><code>a.jsonl:2</code>: is blank</li>" in page
    assert "<code>a.jsonl:3</code>: &lt;script&gt;xxx" in page
    assert "x" * 200 not in page
    assert page.count("<li><code>a.jsonl:") == 5
    assert "These are the first; <code>nightschool journal check FILE</code> lists all." in page
    assert "From round 1 on the learned reward cannot be watched" in page
    assert '<th scope="col">held-out picks ranked first</th>' in page
    short = render_markdown(summary, decision)
    assert "\n- Journal lines that were refused and taught nothing: 7. The first: a.jsonl:2: is blank\n" in short
    assert f"\n- Your day: {day}\n" in short
    assert "An &lt;owl&gt;" in page
