"""The morning report: one self-contained page about a night."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tasks.evaluation.statistics import probability, signed
from tasks.report import charts
from tasks.report import history as report_history
from tasks.report.exam import exam_sheet
from tasks.report.lessons import step_lessons
from tasks.report.markdown import EMPTY, day, duration, headline, links_of, target_of
from tasks.report.queries import (
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
from tasks.report.sections import (
    distilled,
    fates_met,
    fault_sentences,
    learned_rounds,
    reward_model_sentences,
    trace_remarks,
    trace_sources,
)
from tasks.report.svg import Picture

STAGES = (
    *("enroll", "enroll_teacher", "freeze_journal", "import_traces", "ask_teacher", "distill"),
    *("self_distill_answers", "self_distill", "lessons", "fit_reward_model", "owner_prompts"),
    *("select_prompts", "sample", "judge", "score", "credit", "update", "checkpoint", "merge", "quiz", "rank_picks"),
    *("picks", "evaluate", "decide", "vault", "promote"),
)
FIGURES = {
    "reward": "mean reward",
    "signal_share": "groups with signal",
    "completion_length": "tokens a completion",
    "truncated_share": "cut off",
    "entropy": "entropy",
    "mismatch": "mismatch",
    "grad_norm": "gradient norm",
    "seconds_update": "seconds of the update",
}
PARTS = {
    "reward/correct": "right answers",
    "reward/format": "in the format asked for",
    "reward/length": "length, share of the limit",
    "reward/tie_breaker": "learned tie-breaker",
    "reward/language": "language",
}


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
    environment.filters.update(signed=signed, duration=duration, probability=probability, figure=_figure, share=_share)
    page = environment.get_template("template.html").render(
        night=day(summary["night"]),
        summary=summary,
        who=WHO,
        headline=headline(summary, decision),
        candidate=decision.get("comparisons", {}).get("candidate", {}),
        decision=decision,
        targets=decision.get("targets") or [summary["target"]],
        growth=decision.get("growth"),
        sheet=exam_sheet(night),
        vault=read_json(night / "vault" / "comparison", "vault.json") or {},
        history=(history := report_history.past_nights(night, summary)),
        curve=report_history.curve(history, target_of(summary)) if len(history) > 1 else None,
        pictures=_pictures(night, summary),
        figures=_figures(round_metrics(night)),
        learned=learned_rounds(night),
        answers=sampled_answers(night),
        flips=flipped_answers(night),
        verdicts=verdict_counts(night),
        by_benchmark=verdict_table(night),
        excluded=excluded_problems(night),
        lessons=distilled(read_json(night / "distill", "counts.json")),
        channels=step_lessons(night, target_of(summary)),
        faults=fault_sentences(summary["journal"]),
        trace_sources=(sources := trace_sources(night)),
        trace_fates=fates_met(sources),
        trace_remarks=trace_remarks(night),
        reward_model=reward_model_sentences(read_json(night / "fit_reward_model", "outcome.json")),
        config=_text(night / "config.yaml"),
        links=links_of(summary),
    )
    return page.encode("utf-8", "replace").decode()  # a lone surrogate in a completion could not be written


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

    found = drawn(lambda reward: charts.learning_curve(reward, quiz, exams), "reward")
    parts = metrics[[name for name in PARTS if name in metrics]].rename(columns=PARTS).dropna(how="all")
    found += [charts.reward_parts(parts)] if parts.size else []
    found += [charts.verdicts(judged)] if judged else []
    found += [charts.kinds(rates, tried)] if len(rates) else []
    found += drawn(lambda share: charts.signal(share, *_signal_figures(metrics)), "signal_share")
    found += drawn(charts.gradients, "grad_norm")
    found += drawn(charts.lengths, "completion_length", "truncated_share")
    found += drawn(charts.health, "entropy", "mismatch")
    found += drawn(charts.teacher, "teacher_kl")
    found += [charts.distillation(lessons)] if len(lessons) else []
    return found + ([charts.durations(_in_order(summary["seconds"]))] if summary["seconds"] else [])


def _figures(metrics: pd.DataFrame) -> pd.DataFrame:
    """What can be pointed at in the pictures, for those who read: rounds × figures."""
    return metrics[[name for name in FIGURES if name in metrics]].rename(columns=FIGURES)


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


def _share(value: float | None) -> str:
    """A share in per cent; a dash for what was not measured."""
    return "–" if value is None else f"{100 * value:.0f} %"


def _text(file: Path) -> str | None:
    return file.read_text() if file.exists() else None
