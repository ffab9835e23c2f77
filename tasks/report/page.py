"""The morning report: a self-contained HTML page about one night."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from conf.storage.layout import committed_json
from tasks.report.charts import Picture, history_curve, learning_curve
from tasks.report.episode import shown_episode
from tasks.report.history import past_nights
from tasks.report.lessons import lessons_of
from tasks.report.markdown import first_facts, template
from tasks.report.queries import (
    MODELS,
    exam_verdicts,
    excluded_problems,
    flipped_answers,
    round_metrics,
    sampled_answers,
    solve_rates,
)
from tasks.report.sections import asked_again, remarks
from tasks.rollouts.verdicts import VERDICTS
from tasks.workers.cluster import read_machines

FIGURES = {
    "reward": "mean reward",
    "quiz": "quiz",
    "signal_share": "groups with signal",
    "completion_length": "tokens per completion",
    "truncated_share": "cut off",
    "entropy": "entropy",
    "mismatch": "mismatch",
    "grad_norm": "gradient norm",
    "teacher_kl": "distance to the teacher",
    "reward/learned": "learned reward on your own prompts",
    "reward/learned_length": "its correlation with length",
    "ranked_first": "held-out picks ranked first",
}


def render(night: Path, summary: Mapping[str, Any]) -> str:
    """Render a night's report as one HTML page. `night`: the night's folder. Sections without data are left out."""
    decision = committed_json(night / "decide", "decision.json")
    history, metrics = past_nights(night, summary), round_metrics(night)
    verdicts = {(name, "training"): counts for name, counts in summary["verdicts"].items()} | exam_verdicts(night)
    page = template("template.html").render(
        first_facts(summary, decision),
        decision=decision,
        differences=decision["comparisons"]["candidate"],
        history=history,
        history_curve=history_curve(history, summary["target"]) if len(history) > 1 else None,
        learning_curve=_learning_curve(metrics, summary),
        figures=metrics[[name for name in FIGURES if name in metrics]]
        .rename(columns=FIGURES)
        .dropna(axis=1, how="all")
        .dropna(how="all"),
        rates=solve_rates(night),
        answers=sampled_answers(night),
        flips=flipped_answers(night, summary["target"]),
        episode=shown_episode(night),
        verdicts=verdicts,
        verdicts_given=[name for name in VERDICTS if any(counts[name] for counts in verdicts.values())],
        excluded=excluded_problems(night),
        lessons=lessons_of(night),
        asked_again=asked_again(night),
        **remarks(night),
        machines=read_machines(night),
        config=(night / "config.yaml").read_text(),
    )
    return page.encode("utf-8", "replace").decode()  # a lone surrogate in a completion cannot be encoded


def _learning_curve(metrics: pd.DataFrame, summary: Mapping[str, Any]) -> Picture | None:
    """Return the learning curve, or None if no round has a reward."""
    if "reward" not in metrics or metrics["reward"].isna().all():
        return None
    exams = {MODELS[role]: found["accuracy"] for role, found in summary["accuracy"].items()}
    return learning_curve(metrics["reward"].dropna(), metrics["quiz"].dropna(), exams)
