"""The report in words: its first lines, and the short form in Markdown for Prefect, a chat or an e-mail."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.evaluation.statistics import probability, signed
from tasks.report.queries import MODELS
from tasks.report.sections import journal_sentences
from tasks.report.text import day, duration, percent, percent_range, plain_line, plural

MORE = 1.25  # times the hours of a night into which no round fitted


@dataclass(frozen=True)
class Headline:
    """What the owner wants to know first."""

    title: str
    changed: str
    how_much: str
    how_sure: str
    to_do: str


def headline(summary: Mapping[str, Any], decision: Mapping[str, Any]) -> Headline:
    """Return what changed, by how much, how sure that is, and what to do; `decision`: the content of decision.json."""
    promoted = summary["decision"] == "promoted"
    comparisons = decision["comparisons"]["candidate"]
    target = summary["target"]
    found = comparisons[target]
    after, before = found["after"], found["before"]
    if after["counted"]:
        did = f"solves {_solved(after)} of {after['n']} ({percent(after['accuracy'])})"
        other, flips = f"{_solved(before)} ({percent(before['accuracy'])})", ("answers became right", "wrong")
    else:
        did, other = f"reaches {after['accuracy']:.2f} on average in {after['n']} episodes", f"{before['accuracy']:.2f}"
        flips = "episodes went better", "worse"
    how_much = f"{signed(found['difference'])} on {target}: the candidate {did}; the champion {other}."
    how_sure = (
        f"95 % interval {signed(found['low'])} to {signed(found['high'])}; {found['gained']} {flips[0]}, "
        f"{found['lost']} {flips[1]}; {probability(found['p_value'])}."
    )
    title = "the candidate was promoted" if promoted else "the champion stays"
    return Headline(title, _changed(summary), how_much, how_sure, to_do(summary))


def render_markdown(summary: Mapping[str, Any], decision: Mapping[str, Any], by_hand: Sequence[str] = ()) -> str:
    """Return the night in short: alarms, the first lines, the exam, the reasons, and where to read on.

    `by_hand`: how the owner has moved the serving alias since the night before.
    """
    first = headline(summary, decision)
    lines = [f"# Night of {day(summary['night'])}: {first.title}", ""]
    if summary["alarms"]:
        lines += [*(f"- **Alarm:** {plain_line(alarm)}" for alarm in summary["alarms"]), ""]
    lines += [first.changed, first.how_much, first.how_sure]
    lines += [f"What to do: {first.to_do[0].lower()}{first.to_do[1:]}", "", *_exam_table(summary), ""]
    lines += [f"- {plain_line(line)}" for line in (*summary["reasons"], *summary["incidents"])]
    if summary["day_copy"]:
        lines.append(f"- Your day: {plain_line(' '.join(summary['day_copy']))}")
    if faults := journal_sentences(summary["journal"]):
        faults += [
            f"The first: {row['file']}:{row['line']}: {row['reason']}" for row in summary["journal"]["first"][:1]
        ]
        lines.append(f"- {plain_line(' '.join(faults))}")
    lines += [f"- By hand since the night before: {move}." for move in by_hand]
    lines += ["", f"{plural(summary['rounds'], 'round')}; the night took {duration(summary['wall_seconds'])}."]
    lines.append(" · ".join(f"[{name}]({url})" for name, url in links_of(summary).items()))
    lines.append(f"Report: `{summary['report']}`")
    return "\n".join(lines) + "\n"


def to_do(summary: Mapping[str, Any]) -> str:
    """Return the owner's next step: read the alarms, carry out what a dry run left open, or nothing."""
    alarms = len(summary["alarms"])
    first = f"Read the {'alarm' if alarms == 1 else f'{alarms} alarms'} first." if alarms else "Nothing."
    if summary["withheld"]:
        read = f"{first} " if alarms else ""
        return f"{read}This dry run moved no alias; to promote the candidate, run: {summary['withheld']}"
    if summary["decision"] == "promoted" and not moved_meanwhile(summary):
        return f"{first} If the new checkpoint disappoints you, run: {summary['way_back']}"
    if alarms:
        return first
    if not summary["rounds"] and summary["hours"] and summary["hours"]["rounds"]:
        return f"Give the night more time: no round fitted. {_minutes_for_a_round(summary['hours'])} minutes would do."
    return "Nothing. The next night tries again with the day's new lessons."


def _minutes_for_a_round(hours: Mapping[str, Any]) -> int:
    """Return the minutes into which a round should fit: as expected before the night, and more than it had."""
    return max(hours["enough"] or 0, math.ceil(hours["hours"] / 60 * MORE))


def moved_meanwhile(summary: Mapping[str, Any]) -> bool:
    """Return whether the alias was moved during the night, so that another checkpoint serves than was decided."""
    return summary["serving"] not in (None, _decided(summary))


def links_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the summary's links to pages; anything but http:// and https:// is left out."""
    return {name: url for name, url in summary["links"].items() if re.match(r"https?://", url)}


def _changed(summary: Mapping[str, Any]) -> str:
    serving = (summary["serving"] or _decided(summary))[:12]
    if moved_meanwhile(summary):
        return f"{serving} now serves: the alias was moved during the night."
    if summary["decision"] == "promoted":
        return f"The new checkpoint, {serving}, now serves."
    return f"Nothing: the champion, {serving}, still serves."


def _decided(summary: Mapping[str, Any]) -> str:
    """Return the digest of the checkpoint that serves if only the decision counts."""
    return summary["digests"]["candidate" if summary["decision"] == "promoted" else "champion"]


def _exam_table(summary: Mapping[str, Any]) -> list[str]:
    models = [role for role in MODELS if role in summary["accuracy"]]
    head = [
        f"| exam | problems | {' | '.join(MODELS[role] for role in models)} |",
        f"|:--|{'--:|' * (len(models) + 1)}",
    ]
    rows = []
    for part, accuracies in summary["benchmarks"].items():
        cells = [
            f"{percent(one['accuracy'])} ({percent_range(one['low'], one['high'])})" if one else "–"
            for one in (accuracies.get(role) for role in models)
        ]
        rows.append(f"| {part} | {accuracies['candidate']['n']} | {' | '.join(cells)} |")
    return [*head, *rows]


def _solved(accuracy: Mapping[str, float]) -> int:
    return round(accuracy["accuracy"] * accuracy["n"])
