"""The report's first lines, and the whole of it in two dozen lines of Markdown: for Prefect, a chat, an e-mail."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tasks.evaluation.statistics import probability, signed
from tasks.report.queries import WHO
from tasks.report.sections import fault_sentences

# What a night that ended early may not have.
EMPTY: dict[str, Any] = {
    "decision": "kept",
    "reasons": [],
    "target": "",
    "accuracy": {},
    "benchmarks": {},
    "digests": {},
    "rounds": 0,
    "incidents": [],
    "journal": {"refused": 0, "first": [], "unknown_policies": 0},
    "seconds": {},
    "alarms": [],
    "report": "",
    "links": {},
    "serving": None,
    "withheld": None,
    "way_back": "nightschool rollback",
}


@dataclass(frozen=True)
class Headline:
    """What the owner wants to know first."""

    title: str
    changed: str
    how_much: str
    how_sure: str
    to_do: str


def headline(summary: Mapping[str, Any], decision: Mapping[str, Any]) -> Headline:
    """What changed, by how much, how sure that is, and what to do; `decision` is what decision.json holds, or empty."""
    summary = EMPTY | dict(summary)
    promoted = summary["decision"] == "promoted"
    compared = decision.get("comparisons", {}).get("candidate", {})
    target = target_of(summary)
    if promoted:  # of several targets the one that earned it
        named = [part for part in decision.get("targets", ()) if part in compared]
        target = min(named, key=lambda part: compared[part]["p_value"], default=target)
    found = compared.get(target)
    accuracy = summary["accuracy"]
    how_much, how_sure = "No exam was sat.", "Nothing was measured."
    if found:
        how_much = _how_much(found["before"], found["after"], found["difference"], target)
        how_sure = (
            f"95 % interval {signed(found['low'])} to {signed(found['high'])}; {found['gained']} answers became right, "
            f"{found['lost']} wrong; {probability(found['p_value'])}."
        )
    elif accuracy.get("champion") and accuracy.get("candidate"):
        before, after = accuracy["champion"], accuracy["candidate"]
        how_much = _how_much(before, after, after["accuracy"] - before["accuracy"], target_of(summary))
        how_sure = "See the reasons of the decision."
    title = "the candidate was promoted" if promoted else "the champion stays"
    return Headline(title, _changed(summary, promoted), how_much, how_sure, to_do(summary))


def render_markdown(
    summary: Mapping[str, Any], decision: Mapping[str, Any] | None = None, by_hand: Sequence[str] = ()
) -> str:
    """The night in short: alarms, the first lines, the exam, the reasons, and where to read on.

    `by_hand`: what the owner did to the alias that serves since the night before.
    """
    summary = EMPTY | dict(summary)
    first = headline(summary, decision or {})
    lines = [f"# Night of {day(summary['night'])}: {first.title}", ""]
    if summary["alarms"]:
        lines += [*(f"- **Alarm:** {plain_line(alarm)}" for alarm in summary["alarms"]), ""]
    lines += [first.changed, *([first.how_much, first.how_sure] if summary["accuracy"] else []), "", *_exam(summary)]
    lines += [f"- {plain_line(reason)}" for reason in summary["reasons"]]
    lines += [f"- {plain_line(incident)}" for incident in summary["incidents"]]
    if faults := fault_sentences(summary["journal"]):
        first_line = summary["journal"]["first"][:1]
        faults += [f"The first: {row['file']}:{row['line']}: {row['reason']}" for row in first_line]
        lines.append(f"- {plain_line(' '.join(faults))}")
    lines += [f"- By hand since the night before: {move}." for move in by_hand]
    rounds = f"{summary['rounds']} round{'' if summary['rounds'] == 1 else 's'}"
    lines += ["", f"{rounds}, {duration(sum(summary['seconds'].values()))}. {first.to_do}"]
    lines.append(" · ".join(f"[{name}]({url})" for name, url in links_of(summary).items()))
    lines.append(f"Report: `{summary['report']}`" if summary["report"] else "")
    return "\n".join(lines).strip() + "\n"


def target_of(summary: Mapping[str, Any]) -> str:
    """The part of the exam that decides."""
    return summary["target"] or next(iter(summary["benchmarks"]), "")


def day(night: str) -> str:
    """`2026-11-20` as `20 November 2026`."""
    try:
        found = date.fromisoformat(night)
    except ValueError:
        return night
    return f"{found.day} {found:%B %Y}"


def links_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """The links that lead to a page, and not to a script."""
    links = summary["links"] or {}
    return {str(name): str(url) for name, url in links.items() if re.match(r"https?://", str(url))}


def plain_line(text: str) -> str:
    """Text of one line that cannot open an HTML tag."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", " ".join(str(text).split()))


def duration(seconds: float) -> str:
    """`4.2 s`, `3 min 07 s`, `2 h 05 min`."""
    if seconds < 59.95:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _exam(summary: Mapping[str, Any]) -> list[str]:
    columns = [who for who in WHO if summary["accuracy"].get(who)]
    if not columns:
        return []
    head = [f"| exam | n | {' | '.join(WHO[who] for who in columns)} |", f"|:--|{'--:|' * (len(columns) + 1)}"]
    return [*head, *(_row(part, three, columns) for part, three in summary["benchmarks"].items()), ""]


def _row(part: str, three: Mapping[str, Any], columns: list[str]) -> str:
    known = [three.get(who) for who in columns]
    cells = [f"{one['accuracy']:.2f} ({one['low']:.2f}–{one['high']:.2f})" if one else "–" for one in known]
    return f"| {part} | {next((one['n'] for one in known if one), 0)} | {' | '.join(cells)} |"


def _how_much(before: Mapping[str, float], after: Mapping[str, float], difference: float, target: str) -> str:
    return (
        f"{signed(difference)} on {target}: it solves {after['accuracy']:.2f} of {after['n']} problems, "
        f"the champion {before['accuracy']:.2f}."
    )


def moved_meanwhile(summary: Mapping[str, Any]) -> bool:
    """Whether another checkpoint serves than the decision says, since the alias was moved meanwhile."""
    return summary["serving"] not in (None, "", _expected(summary))


def _expected(summary: Mapping[str, Any]) -> str:
    return str(summary["digests"].get("candidate" if summary["decision"] == "promoted" else "champion") or "")


def _changed(summary: Mapping[str, Any], promoted: bool) -> str:
    serving = summary["serving"] or _expected(summary)
    if moved_meanwhile(summary):
        return f"The next lesson starts with {serving[:12]}, to which the alias was moved meanwhile."
    if promoted:
        return f"The next lesson starts with the new checkpoint, {serving[:12] or 'the candidate'}."
    return f"Nothing: the next lesson starts with the champion, {serving[:12] or 'as before'}."


def to_do(summary: Mapping[str, Any]) -> str:
    """What the owner is to do: read the alarms, carry out what a dry run left, or nothing."""
    alarms = len(summary["alarms"])
    first = f"Read the {'alarm' if alarms == 1 else f'{alarms} alarms'} first." if alarms else "Nothing."
    if summary["withheld"]:
        return f"{first} The dry run moved no alias; to carry out the promotion: {summary['withheld']}"
    if summary["decision"] == "promoted" and not moved_meanwhile(summary):
        return f"{first} Should the new checkpoint disappoint you: {summary['way_back']}"
    if alarms:
        return first
    return "Nothing. The next night tries again, with the day's new lessons."
