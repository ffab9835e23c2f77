"""The morning report: one self-contained page on a night."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tasks.cluster.cluster import read_machines
from tasks.evaluation.statistics import signed
from tasks.report import charts
from tasks.report.episode import shown_episode
from tasks.report.history import history_curve, past_nights
from tasks.report.lessons import lessons_of
from tasks.report.markdown import headline, links_of
from tasks.report.positions import by_position
from tasks.report.queries import (
    MODELS,
    exam_details,
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
from tasks.report.sections import (
    fates_met,
    journal_sentences,
    judge_sentences,
    learned_rounds,
    reward_model_sentences,
    trace_remarks,
    trace_sources,
)
from tasks.report.svg import Picture
from tasks.report.text import day, duration, number, percent, percent_range, plural

FIGURES = {
    "reward": "mean reward",
    "signal_share": "groups with signal",
    "completion_length": "tokens per completion",
    "truncated_share": "cut off",
    "entropy": "entropy",
    "mismatch": "mismatch",
    "grad_norm": "gradient norm",
    "seconds_update": "seconds of the update",
}
PARTS = {
    "reward/correct": "correct",
    "reward/format": "in the requested format",
    "reward/length": "length, share of the limit",
    "reward/tie_breaker": "learned tie-breaker",
    "reward/language": "language",
}
GROUPS = {
    "groups": "groups sampled",
    "useful_groups": "with signal",
    "replaced_groups": "drawn as replacements",
}


def render(night: Path, summary: Mapping[str, Any]) -> str:
    """Return the report of the night in this folder as one HTML file; what the night does not have is left out."""
    decision = read_json(night / "decide", "decision.json")
    target = summary["target"]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        signed=signed, duration=duration, number=number, percent=percent, percent_range=percent_range, plural=plural
    )
    page = environment.get_template("template.html").render(
        night=day(summary["night"]),
        summary=summary,
        models={role: name for role, name in MODELS.items() if role in summary["accuracy"]},
        headline=headline(summary, decision),
        decision=decision,
        differences=decision["comparisons"]["candidate"],
        details=exam_details(night),
        history=(history := past_nights(night, summary)),
        curve=history_curve(history, target) if len(history) > 1 else None,
        pictures=_pictures(night, summary),
        figures=_figures(round_metrics(night)),
        learned=learned_rounds(night),
        answers=sampled_answers(night),
        flips=flipped_answers(night),
        episode=shown_episode(night),
        verdicts=verdict_counts(night),
        by_benchmark=verdict_table(night),
        excluded=excluded_problems(night),
        lessons=lessons_of(night),
        faults=journal_sentences(summary["journal"]),
        trace_sources=(sources := trace_sources(night)),
        trace_fates=fates_met(sources),
        trace_remarks=trace_remarks(night),
        reward_model=[
            *judge_sentences(read_json(night / "examine_judge", "outcome.json")),
            *reward_model_sentences(read_json(night / "fit_reward_model", "outcome.json")),
        ],
        machines=read_machines(night),
        config=(night / "config.yaml").read_text(),
        links=links_of(summary),
    )
    return page.encode("utf-8", "replace").decode()  # a lone surrogate in a completion cannot be written


def _pictures(night: Path, summary: Mapping[str, Any]) -> list[Picture]:
    metrics, quiz = round_metrics(night), quiz_accuracies(night)
    exams = {MODELS[role]: found["accuracy"] for role, found in summary["accuracy"].items()}
    losses = lesson_losses(night)
    rates, tried = solve_rates(night)
    verdicts = verdicts_by_round(night)
    seconds = {stage.replace("_", " "): spent for stage, spent in summary["seconds"].items()}

    def drawn(draw: Any, *names: str) -> list[Picture]:
        if not set(names) <= set(metrics):
            return []
        known = metrics[list(names)].dropna()
        return [] if known.empty else [draw(*(known[name] for name in names))]

    found = drawn(lambda reward: charts.learning_curve(reward, quiz, exams), "reward")
    parts = metrics[[name for name in PARTS if name in metrics]].rename(columns=PARTS).dropna(how="all")
    found += [charts.reward_parts(parts)] if parts.size else []
    found += [charts.verdicts(verdicts)] if verdicts else []
    found += [charts.kinds(rates, tried)] if len(rates) else []
    groups = {label: float(metrics[name].sum()) for name, label in GROUPS.items() if name in metrics}
    found += [charts.positions(places)] if len(places := by_position(night)) > 1 else []
    found += drawn(lambda share: charts.signal(share, groups), "signal_share")
    found += drawn(charts.gradients, "grad_norm")
    found += drawn(charts.lengths, "completion_length", "truncated_share")
    found += drawn(charts.health, "entropy", "mismatch")
    found += drawn(charts.teacher, "teacher_kl")
    found += [charts.distillation(losses)] if len(losses) else []
    return [*found, charts.durations(seconds, summary["wall_seconds"])]


def _figures(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the charts' figures as a table, rounds × figures, for those who read rather than point."""
    return metrics[[name for name in FIGURES if name in metrics]].rename(columns=FIGURES)
