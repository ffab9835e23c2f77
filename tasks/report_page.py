"""The morning report: one self-contained page about a night, and the same in a dozen lines of Markdown."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tasks import report_pictures
from tasks.decision import probability, signed
from tasks.learned_rounds import learned_rounds
from tasks.report_evidence import (
    WHO,
    excluded_problems,
    flipped_answers,
    lesson_losses,
    quiz_accuracies,
    read_json,
    round_metrics,
    sampled_answers,
    solve_rates,
    verdict_counts,
    verdict_table,
    verdicts_by_round,
)
from tasks.report_pictures import Picture, duration
from tasks.report_steps import step_lessons
from tasks.report_traces import fates_met, trace_remarks, trace_sources

STAGES = (
    *("freeze_journal", "import_traces", "ask_teacher", "distill", "self_distill", "lessons", "fit_reward_model"),
    *("owner_prompts", "select_prompts", "sample", "judge", "score", "credit", "update"),
    *("checkpoint", "quiz", "rank_picks", "evaluate", "decide", "enroll", "promote"),
)
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
    "seconds": {},
    "alarms": [],
    "report": "",
    "links": {},
}


@dataclass(frozen=True)
class Headline:
    """What the owner wants to know first."""

    title: str
    changed: str
    how_much: str
    how_sure: str
    to_do: str


def render(night: Path, summary: Mapping[str, Any]) -> str:
    """The report of the night in this folder as one HTML file; parts of which the folder has nothing are left out."""
    summary = EMPTY | dict(summary)
    decision = read_json(night / "decide", "decision.json") or {}
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(signed=signed, duration=duration, probability=probability, figure=_figure)
    page = environment.get_template("report_template.html").render(
        night=_day(summary["night"]),
        summary=summary,
        who=WHO,
        headline=_headline(summary, decision),
        candidate=decision.get("comparisons", {}).get("candidate", {}),
        growth=decision.get("growth"),
        pictures=_pictures(night, summary),
        learned=learned_rounds(night),
        answers=sampled_answers(night),
        flips=flipped_answers(night),
        verdicts=verdict_counts(night),
        by_benchmark=verdict_table(night),
        excluded=excluded_problems(night),
        lessons=read_json(night / "distill", "counts.json"),
        channels=step_lessons(night, _target(summary)),
        trace_sources=(sources := trace_sources(night)),
        trace_fates=fates_met(sources),
        trace_remarks=trace_remarks(night),
        reward_model=read_json(night / "fit_reward_model", "outcome.json"),
        config=_text(night / "config.yaml"),
        links=_links(summary),
    )
    return page.encode("utf-8", "replace").decode()  # a lone surrogate in a completion could not be written


def render_markdown(summary: Mapping[str, Any]) -> str:
    """The night in a dozen lines, for a Prefect artifact and the terminal."""
    summary = EMPTY | dict(summary)
    first = _headline(summary, {})
    columns = [who for who in WHO if summary["accuracy"].get(who)]
    lines = [f"# Night of {_day(summary['night'])}: {first.title}", ""]
    if summary["alarms"]:
        lines += [*(f"- **Alarm:** {plain_line(alarm)}" for alarm in summary["alarms"]), ""]
    lines += [first.changed, ""]
    if columns:
        lines += [f"| exam | n | {' | '.join(WHO[who] for who in columns)} |", f"|:--|{'--:|' * (len(columns) + 1)}"]
        lines += [_row(part, three, columns) for part, three in summary["benchmarks"].items()]
        lines.append("")
    lines += [f"- {plain_line(reason)}" for reason in summary["reasons"]]
    lines += [f"- {plain_line(incident)}" for incident in summary["incidents"]]
    lines += [
        "",
        f"{summary['rounds']} rounds, {duration(sum(summary['seconds'].values()))}. {first.to_do}",
    ]
    lines.append(" · ".join(f"[{name}]({url})" for name, url in _links(summary).items()))
    lines.append(f"Report: `{summary['report']}`" if summary["report"] else "")
    return "\n".join(lines).strip() + "\n"


def _headline(summary: Mapping[str, Any], decision: Mapping[str, Any]) -> Headline:
    """What changed, by how much, how sure that is, and what to do."""
    promoted = summary["decision"] == "promoted"
    digests = {who: str(digest)[:12] for who, digest in summary["digests"].items() if digest}
    found = decision.get("comparisons", {}).get("candidate", {}).get(_target(summary))
    accuracy = summary["accuracy"]
    if promoted:
        changed = f"The next lesson starts with the new checkpoint, {digests.get('candidate', 'the candidate')}."
    else:
        changed = f"Nothing: the next lesson starts with the champion, {digests.get('champion', 'as before')}."
    how_much, how_sure = "No exam was sat.", "Nothing was measured."
    if found:
        how_much = _how_much(found["before"], found["after"], found["difference"], _target(summary))
        how_sure = (
            f"95 % interval {signed(found['low'])} to {signed(found['high'])}; {found['gained']} answers became right, "
            f"{found['lost']} wrong; {probability(found['p_value'])}."
        )
    elif accuracy.get("champion") and accuracy.get("candidate"):
        before, after = accuracy["champion"], accuracy["candidate"]
        how_much = _how_much(before, after, after["accuracy"] - before["accuracy"], _target(summary))
        how_sure = "See the reasons of the decision."
    title = "the candidate was promoted" if promoted else "the champion stays"
    return Headline(title, changed, how_much, how_sure, _to_do(promoted, len(summary["alarms"])))


def _pictures(night: Path, summary: Mapping[str, Any]) -> list[Picture]:
    """The pictures for which the night has figures."""
    metrics, quiz = round_metrics(night), quiz_accuracies(night)
    exams = {WHO[who]: found["accuracy"] for who, found in summary["accuracy"].items() if who in WHO and found}
    lessons = lesson_losses(night)
    rates, tried = solve_rates(night)
    judged = verdicts_by_round(night)

    def drawn(draw: Any, *names: str) -> list[Picture]:
        if not set(names) <= set(metrics):
            return []
        known = metrics[list(names)].dropna()
        return [] if known.empty else [draw(*(known[name] for name in names))]

    found = drawn(lambda reward: report_pictures.learning_curve(reward, quiz, exams), "reward")
    found += [report_pictures.verdicts(judged)] if judged else []
    found += [report_pictures.kinds(rates, tried)] if len(rates) else []
    found += drawn(lambda share: report_pictures.signal(share, *_signal_figures(metrics)), "signal_share")
    found += drawn(report_pictures.gradients, "grad_norm")
    found += drawn(report_pictures.lengths, "completion_length", "truncated_share")
    found += drawn(report_pictures.health, "entropy", "mismatch")
    found += drawn(report_pictures.teacher, "teacher_kl")
    found += [report_pictures.distillation(lessons)] if len(lessons) else []
    return found + ([report_pictures.durations(_in_order(summary["seconds"]))] if summary["seconds"] else [])


def _signal_figures(metrics: pd.DataFrame) -> tuple[dict[str, pd.Series], dict[str, float]]:
    """What the solve rates let hope for, and the night's groups; of an earlier version's night not all is known."""
    hopes = {"expected": "expected_signal_share", "of an even draw": "even_signal_share"}
    counts = {
        "groups sampled": "groups",
        "with signal": "useful_groups",
        "drawn in place of others": "replaced_groups",
        "refills": "refills",
    }
    return (
        {told: metrics[name].dropna() for told, name in hopes.items() if name in metrics and metrics[name].any()},
        {told: float(metrics[name].sum()) for told, name in counts.items() if name in metrics},
    )


def _in_order(seconds: Mapping[str, float]) -> dict[str, float]:
    """The stages as they follow upon each other, under the names that people read."""
    ordered = sorted(seconds, key=lambda stage: STAGES.index(stage) if stage in STAGES else len(STAGES))
    return {stage.replace("_", " "): seconds[stage] for stage in ordered}


def _figure(value: float, decimals: int) -> str:
    """A number of so many decimals; a dash for what was not measured."""
    return "–" if math.isnan(value) else f"{value:.{decimals}f}".replace("-", "−")


def _text(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def _target(summary: Mapping[str, Any]) -> str:
    return summary["target"] or next(iter(summary["benchmarks"]), "")


def _how_much(before: Mapping[str, float], after: Mapping[str, float], difference: float, target: str) -> str:
    return (
        f"{signed(difference)} on {target}: it solves {after['accuracy']:.2f} of {after['n']} problems, "
        f"the champion {before['accuracy']:.2f}."
    )


def _to_do(promoted: bool, alarms: int) -> str:
    if alarms:
        return f"Read the {'alarm' if alarms == 1 else f'{alarms} alarms'} first."
    if promoted:
        return "Nothing. Should the new checkpoint disappoint you: nightschool rollback."
    return "Nothing. The next night tries again, with the day's new lessons."


def _day(night: str) -> str:
    try:
        day = date.fromisoformat(night)
    except ValueError:
        return night
    return f"{day.day} {day:%B %Y}"


def _links(summary: Mapping[str, Any]) -> dict[str, str]:
    """The links that lead to a page, and not to a script."""
    links = summary["links"] or {}
    return {str(name): str(url) for name, url in links.items() if re.match(r"https?://", str(url))}


def _row(part: str, three: Mapping[str, Any], columns: list[str]) -> str:
    known = [three.get(who) for who in columns]
    cells = [f"{one['accuracy']:.2f} ({one['low']:.2f}–{one['high']:.2f})" if one else "–" for one in known]
    return f"| {part} | {next((one['n'] for one in known if one), 0)} | {' | '.join(cells)} |"


def plain_line(text: str) -> str:
    """Text of one line that cannot open an HTML tag."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", " ".join(str(text).split()))
