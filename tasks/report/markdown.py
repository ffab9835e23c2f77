"""The report's opening lines, and its short form in Markdown for Prefect, chat or e-mail."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape

from tasks.evaluation.decide import MASTERED
from tasks.evaluation.statistics import Accuracy, probability, signed
from tasks.report.queries import MODELS
from tasks.report.text import day, duration, number, percent, percent_range, plain_line, plural

MORE = 1.25  # if no round fitted into the night, the report suggests this multiple of its hours
FILTERS = (duration, number, percent, percent_range, plain_line, plural, signed)


class Headline(NamedTuple):
    """The report's opening lines: what the owner wants to know first."""

    title: str
    changed: str
    how_much: str
    how_sure: str
    to_do: str


def template(name: str) -> Template:
    """Return one of the report's Jinja templates, given its file name."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({function.__name__: function for function in FILTERS})
    return environment.get_template(name)


def headline(summary: Mapping[str, Any], decision: Mapping[str, Any]) -> Headline:
    """Return the report's opening lines. `decision`: the content of decision.json."""
    promoted = summary["decision"] == "promoted"
    target = summary["target"]
    found = decision["comparisons"]["candidate"][target]
    after, before = found["after"], found["before"]
    if after["counted"]:
        does, flips = "solves", ("answers became right", "wrong")
    else:
        does, flips = "reaches", ("episodes went better", "worse")
    did = f"the candidate {does} {Accuracy(**after)}; the champion {Accuracy(**before)}"
    how_much = f"{signed(found['difference'])} on {target}: {did}."
    how_sure = f"{found['gained']} {flips[0]}, {found['lost']} {flips[1]}"
    if found["gained"] or found["lost"]:  # else, the interval would be 0 to 0
        interval = f"95 % interval {signed(found['low'])} to {signed(found['high'])}"
        how_sure = f"{interval}; {how_sure}; {probability(found['p_value'])}"
    title = "the candidate was promoted" if promoted else "the champion stays"
    return Headline(title, _changed(summary), how_much, f"{how_sure}.", to_do(summary))


def render_markdown(summary: Mapping[str, Any], decision: Mapping[str, Any], by_hand: Sequence[str] = ()) -> str:
    """Render the short report: alarms, opening lines, exam, reasons, and links to more.

    `by_hand`: the owner's moves of the serving alias since the previous night.
    """
    return template("short.md").render(first_facts(summary, decision), by_hand=by_hand)


def first_facts(summary: Mapping[str, Any], decision: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that page and short report share. Links that are not http:// or https:// are dropped."""
    return {
        "summary": summary,
        "night": day(summary["night"]),
        "headline": headline(summary, decision),
        "models": {role: name for role, name in MODELS.items() if role in summary["accuracy"]},
        "links": {name: url for name, url in summary["links"].items() if re.match(r"https?://", url)},
    }


def to_do(summary: Mapping[str, Any]) -> str:
    """Return the owner's next step, for example to read the alarms. It begins with "Nothing." if none is needed."""
    alarms = len(summary["alarms"])
    add = "Add problems to the exam, or harder ones: it can no longer promote a candidate."
    mastered = MASTERED in summary["reasons"]
    first = f"Read the {'alarm' if alarms == 1 else f'{alarms} alarms'} first"
    read = f"{first}; docs/how-to/every-night.md says what each one asks for. " if alarms else ""
    if summary["withheld"]:
        return f"{read}No alias was moved (--no-promote); to promote the candidate, run: {summary['withheld']}"
    if summary["decision"] == "promoted" and not moved_meanwhile(summary):
        needed = f"{read}{add if mastered else ''}".strip() or "Nothing."
        return f"{needed} If the new checkpoint disappoints you, run: {summary['way_back']}"
    if alarms:
        return read.strip()
    if not summary["rounds"] and summary["hours"] and summary["hours"]["rounds"] and not summary["process_died"]:
        hours = summary["hours"]  # more than the night had, and at least what a round was estimated to need
        minutes = max(hours["enough"] or 0, math.ceil(hours["hours"] / 60 * MORE))
        return f"Give the night more time: no round fitted. {minutes} minutes would do."
    if mastered:
        return add
    return "Nothing. The next night tries again with the day's new lessons."


def moved_meanwhile(summary: Mapping[str, Any]) -> bool:
    """Return whether the serving checkpoint differs from the decision because the alias was moved during the night."""
    return summary["serving"] not in (None, "", _decided(summary))


def _changed(summary: Mapping[str, Any]) -> str:
    serving = (summary["serving"] or _decided(summary))[:12]
    if moved_meanwhile(summary):
        return f"{serving} now serves: the alias was moved during the night."
    if summary["decision"] == "promoted":
        return f"The new checkpoint, {serving}, now serves."
    if summary["serving"] is None:  # --no-promote, in a home without a promotion
        return "Nothing: no model serves yet."
    if not summary["serving"]:
        return "Nothing is known to have changed: MLflow could not say which model serves."
    return f"Nothing: the champion, {serving}, still serves."


def _decided(summary: Mapping[str, Any]) -> str:
    """Return the digest of the checkpoint that should serve according to the decision."""
    return summary["digests"]["candidate" if summary["decision"] == "promoted" else "champion"]
