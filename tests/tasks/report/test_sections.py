"""The report's paragraphs on the journal, the worked solutions, the reward model and the rounds that used it."""

import html
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from models.lessons.preference_data import Pick
from models.lessons.ranking import rank
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tasks.report.sections import (
    day_copy_sentences,
    journal_faults,
    learned_rounds,
    reward_model_sentences,
    trace_remarks,
    trace_sources,
)
from tasks.stage import commit
from tasks.tables import QUARANTINE, write_table

Night = tuple[Path, dict[str, Any]]

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
}
FATES = {"unknown": 0, "dropped": 0, "unreadable": 0, "exam": 0, "too_long": 0, "duplicate": 0, "surplus": 0}
# Of each pick the shortest of three answers was chosen, but of the last one the longest.
PICKS = [*[Pick((1,), ((2,), (3, 3), (4, 4, 4)), 0)] * 7, Pick((1,), ((2,), (3, 3), (4, 4, 4)), 2)]


def write_files(folder: Path, files: Mapping[str, Any], figures: Mapping[str, float] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    commit(folder, folder.name, {}, 1.0, figures)


def write_journal(night: Path, reasons: list[str]) -> None:
    """What the freeze refused, a line each from the second on."""
    folder = night / "freeze_journal"
    folder.mkdir()
    rows = [{"file": "2026-11-20.jsonl", "line": n, "reason": reason} for n, reason in enumerate(reasons, 2)]
    write_table(folder / "quarantine.parquet", QUARANTINE, rows)
    write_files(folder, {})


def rendered(night: Path, summary: dict[str, Any]) -> tuple[str, str]:
    """The page and its short form, with the journal's faults."""
    summary = summary | {"journal": journal_faults(night)}
    return render(night, summary), render_markdown(summary, json.loads((night / "decide/decision.json").read_text()))


def test_refused_journal_lines_are_shown_with_file_line_and_reason(own_night: Night) -> None:
    night, summary = own_night
    write_journal(night, ["words.text: is blank", "Invalid JSON <b>", *["unknown kind 'news'"] * 5])
    page, short = rendered(night, summary)
    assert "<p>Journal lines that were refused and taught nothing: 7.</p>" in page
    assert "<li><code>2026-11-20.jsonl:2</code>: words.text: is blank</li>" in page
    assert "<li><code>2026-11-20.jsonl:3</code>: Invalid JSON &lt;b&gt;</li>" in page
    assert page.count("<li><code>2026-11-20.jsonl:") == 5
    assert "These are the first; <code>nightschool journal check FILE</code> lists all." in page
    line = "Journal lines that were refused and taught nothing: 7. The first: 2026-11-20.jsonl:2: words.text: is blank"
    assert f"\n- {line}\n" in short


def test_a_refused_line_does_not_fill_the_page_and_is_text(own_night: Night) -> None:
    night, summary = own_night
    write_journal(night, ["<script>alert(1)</script>" + "x" * 9000])
    page, short = rendered(night, summary)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;xxx" in page
    assert r"\<script>alert(1)\</script>xxx" in short
    assert "<script" not in page + short.replace(r"\<script", "")
    assert "x" * 200 not in page + short
    assert "These are the first" not in page


def test_worked_solutions_by_source_and_their_remarks(own_night: Night) -> None:
    night, summary = own_night
    assert trace_sources(night) == []
    assert trace_remarks(night) == []
    sources = [
        {"teacher": "me", "source": "2026-11-20.jsonl", "kept": 190, **FATES, "dropped": 2},
        {"teacher": "<b>wise</b>", "source": "asked by night", "kept": 6, **FATES},
    ]
    hits = [{"question": "What is 2 + 2?", "match": kind} for kind in ("exact", "near")]
    write_files(night / "distill", {"sources.json": sources, "contamination.json": hits})
    own = [{"teacher": "itself", "source": "own", "kept": 3, **FATES}]
    write_files(night / "self_distill", {"sources.json": own})
    write_files(night / "ask_teacher", {"asked.json": ASKED})
    (night / "import_traces").mkdir()
    refused = pd.DataFrame([{"file": "some.jsonl", "line": 7, "reason": "not JSON"}])
    refused.to_parquet(night / "import_traces" / "quarantine.parquet")
    write_files(night / "import_traces", {})
    page = render(night, summary)
    assert '<th scope="col">kept</th><th scope="col">dropped</th></tr>' in page
    assert '<th scope="row">me<small>2026-11-20.jsonl</small></th><td>190</td><td>2</td></tr>' in page
    assert "&lt;b&gt;wise&lt;/b&gt;<small>asked by night</small></th><td>6</td><td>0</td>" in page
    assert '<th scope="row">itself<small>own</small></th><td>3</td><td>0</td></tr>' in page
    assert "Imported rows that are not worked solutions: 1. The first: some.jsonl:7: not JSON." in page
    assert "Worked solutions of exam problems, left out: 2 (1 word for word, 1 nearly). The first: What is 2" in page
    assert (
        "The teacher wise answered 6 of 10 questions on 5 problems (2 from the cache) for 900 tokens. "
        "Without an answer: 3 × HTTP 500. It was asked no further: HTTP 500."
    ) in page


def test_sources_that_a_second_lesson_reads_again_are_counted_once(tmp_path: Path) -> None:
    day, other = ({"teacher": "me", "source": "2026-11-20.jsonl", **FATES, "kept": n, "later": 9 - n} for n in (6, 7))
    first, second = ({"teacher": "wise", "source": "asked by night", "kept": kept, **FATES} for kept in (6, 2))
    hit = {"question": "What is 2 + 2?", "match": "near"}
    write_files(tmp_path / "distill", {"sources.json": [day, first], "contamination.json": [hit, hit]})
    write_files(tmp_path / "distill-2", {"sources.json": [other, second], "contamination.json": [hit, hit]})
    assert trace_sources(tmp_path) == [day, first, second]
    assert "left out: 2 (0 word for word, 2 nearly)" in trace_remarks(tmp_path)[0]


def fitted(*, serves: bool) -> dict[str, Any]:
    """The outcome of a reward model that prefers the shortest answer."""
    ranking = rank([[1.0, 0.0, -1.0]] * len(PICKS), PICKS)
    found: dict[str, Any] = {
        "serves": serves,
        "reason": None if serves else "that may be chance (33%)",
        "picks": 38,
        "held_out": 8,
    }
    return found | asdict(ranking)


def test_a_reward_model_that_was_used(own_night: Night) -> None:
    outcome = fitted(serves=True)
    assert reward_model_sentences(outcome) == [
        "A reward model was used. Of 38 picks, 8 were held out; your choice is ranked first in 7 of them (88 %; "
        "95 % interval 47–100 %; chance 33 %).",
        "It ranks the longest answer first in 0 % of the held-out picks; "
        "you chose the longest in 12 %, the shortest in 88 %.",
        # softmax of (1, 0, −1) at its top: 66.5 %, and right in 87.5 %
        "On average it gives its first choice a probability of 67 % (expected calibration error 21 %).",
    ]
    night, summary = own_night
    write_files(night / "fit_reward_model", {"outcome.json": outcome})
    assert " ".join(reward_model_sentences(outcome)) in html.unescape(render(night, summary))


def test_a_reward_model_that_was_refused_or_not_fitted() -> None:
    refused, *figures = reward_model_sentences(fitted(serves=False))
    assert refused == "No reward model was used (38 picks): that may be chance (33%)."
    assert len(figures) == 2
    outcome = {"serves": False, "reason": "fewer than 30 usable picks", "picks": 4, "held_out": 1}
    assert reward_model_sentences(outcome) == ["No reward model was used (4 picks): fewer than 30 usable picks."]
    assert reward_model_sentences(None) == []


@pytest.mark.parametrize(
    "chosen", [None, {"day": True, "reasons": ["It ranks better."]}, {"day": False, "reasons": []}]
)
def test_the_owners_day(own_night: Night, chosen: dict[str, Any] | None) -> None:
    night, summary = own_night
    assert day_copy_sentences(night) == []
    write_files(night / "replay_day", {"day.json": {"lessons": 3, "learned": 2}})
    if chosen:
        write_files(night / "choose_start", {"start.json": chosen})
    said = day_copy_sentences(night)
    begun = {True: "The night began with it: It ranks better.", False: "The night did not begin with it: "}
    assert said == ["The day copy learned 2 of 3 lessons.", *([begun[chosen["day"]]] if chosen else [])]
    summary = summary | {"day_copy": said}
    assert " ".join(said) in html.unescape(render(night, summary))
    assert f"- Your day: {' '.join(said).rstrip()}\n" in render_markdown(
        summary, json.loads((night / "decide/decision.json").read_text())
    )


def test_a_round_whose_answers_were_all_cut_is_a_learned_round(tmp_path: Path) -> None:
    rounds: list[dict[str, float]] = [
        {"reward/learned_z": 0.0, "reward/language": 1.0},
        {"reward/learned": 0.5, "reward/tie_breaker": 0.0},
        {"reward/correct": 0.5},  # the learned reward was not used any more
    ]
    for number, figures in enumerate(rounds, 1):
        write_files(tmp_path / f"round-{number:02d}" / "checkpoint", {"metrics.json": figures})
    found = learned_rounds(tmp_path)
    assert [row.number for row in found] == [1, 2]
    assert math.isnan(found[0].reward)
    assert found[1].reward == 0.5


@pytest.mark.parametrize(("right", "warned"), [(4, True), (5, False)])
def test_a_block_in_which_hacking_cannot_be_noticed(own_night: Night, right: int, warned: bool) -> None:
    night, summary = own_night
    checkpoint = night / "round-01" / "checkpoint"
    metrics = json.loads((checkpoint / "metrics.json").read_text())
    write_files(checkpoint, {"metrics.json": metrics | {"reward/learned": 0.5, "reward/learned_z": 0.0}})
    picks = [n < right for n in range(20)]
    write_files(night / "rank_picks", {"ranking.json": {"accuracy": right / 20, "right": picks}})
    page = render(night, summary)
    assert "The reward model was used in 1 round." in page
    assert ("From round 1 on " in page) is warned
