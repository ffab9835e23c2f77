"""The report's first lines, and its short form."""

from typing import Any

import pytest

from tasks.evaluation.decide import MASTERED
from tasks.report.markdown import headline, render_markdown
from tests.tasks.doubles.night import DIGESTS, Night

PROMOTE = "nightschool promote 3 --config c.yaml"
SERVES = "The new checkpoint, cafe42cafe42, now serves."
STAYS = "Nothing: the champion, c0ffeec0ffee, still serves."
DRY = f"No alias was moved (--no-promote); to promote the candidate, run: {PROMOTE}"
TRIES_AGAIN = "Nothing. The next night tries again with the day's new lessons."
ADD = "Add problems to the exam, or harder ones: it can no longer promote a candidate."
ALARMS = "docs/how-to/every-night.md says what each one asks for."
KEPT = {"decision": "kept", "serving": DIGESTS["champion"]}
NO_ROUND = KEPT | {"rounds": 0, "hours": {"hours": 900.0, "rounds": 300.0, "enough": 30}}
ENDED = "Training stopped after 0 of 3 rounds:"
MORE_TIME = "Give the night more time: no round fitted. 30 minutes would do."
BACK = "If the new checkpoint disappoints you, run: nightschool rollback"
UNKNOWN = "Nothing is known to have changed: MLflow could not say which model serves."
MOVED = "f00df00df00d now serves: the alias was moved during the night."


@pytest.mark.parametrize(
    ("changes", "changed", "to_do"),
    [
        (KEPT, STAYS, TRIES_AGAIN),
        (KEPT | {"reasons": [MASTERED]}, STAYS, ADD),
        (KEPT | {"alarms": ["Disk", "No signal"]}, STAYS, f"Read the 2 alarms first; {ALARMS}"),
        ({"reasons": [MASTERED]}, SERVES, f"{ADD} {BACK}"),
        ({"alarms": ["Disk"]}, SERVES, f"Read the alarm first; {ALARMS} {BACK}"),
        ({"serving": "f00df00df00df00d"}, MOVED, TRIES_AGAIN),
        (KEPT | {"withheld": PROMOTE}, STAYS, DRY),
        (KEPT | {"withheld": PROMOTE, "serving": None}, "Nothing: no model serves yet.", DRY),
        ({"decision": "kept"}, UNKNOWN, TRIES_AGAIN),  # as MLflow died before it was asked
        (NO_ROUND | {"ended_early": f"{ENDED} time ran out before a process exam began."}, STAYS, MORE_TIME),
        (NO_ROUND | {"ended_early": f"{ENDED} the trainer died.", "process_died": True}, STAYS, TRIES_AGAIN),
        (KEPT | {"withheld": PROMOTE, "alarms": ["Disk"]}, STAYS, f"Read the alarm first; {ALARMS} {DRY}"),
    ],
)
def test_what_changed_and_what_to_do(
    night: Night, decision: dict[str, Any], changes: dict[str, Any], changed: str, to_do: str
) -> None:
    first = headline(night[1] | changes, decision)
    assert (first.changed, first.to_do) == (changed, to_do)


def test_where_no_answer_changed_there_is_no_interval(night: Night, decision: dict[str, Any]) -> None:
    found = decision["comparisons"]["candidate"]["arithmetic-1-2"]
    assert headline(night[1], decision).how_sure.startswith("95 % interval ")
    found |= {"gained": 0, "lost": 0}
    assert headline(night[1], decision).how_sure == "0 answers became right, 0 wrong."


def test_the_short_form_is_two_dozen_lines_with_the_same_numbers(night: Night, decision: dict[str, Any]) -> None:
    summary = night[1]
    text = render_markdown(summary | {"alarms": ["Disk <b>full\n| now"], "incidents": ["02:10 a died"]}, decision)
    exam = summary["benchmarks"]["arithmetic-1-2"]["candidate"]
    assert text.startswith("# Night of 20 November 2026: the candidate was promoted\n")
    assert f"{100 * exam['accuracy']:.1f} % ({100 * exam['low']:.1f}–{100 * exam['high']:.1f}) |" in text
    assert "| exam | problems | champion | candidate |" in text
    assert r"- **Alarm:** Disk \<b>full | now" in text
    assert text.index("Alarm") < text.index("What to do: read the alarm first; docs") < text.index("| exam |")
    assert all(f"- {reason}" in text for reason in summary["reasons"])
    assert "- 02:10 a died\n" in text
    assert "3 rounds; the night took 3 min 12 s." in text
    assert "[mlflow](http://localhost:5000/#/runs/1)" in text
    assert len(text.splitlines()) < 24
