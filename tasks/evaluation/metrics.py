"""The exam's metrics: accuracy, pass@k, accuracy by level and subject, format, truncation, length.

The decision uses only the greedy answers; `tasks/evaluation/statistics.py` has the statistical tests.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from tasks.evaluation.statistics import Accuracy, are_episodes, outcomes
from tasks.rollouts.verdicts import FAILED
from tasks.tables import EVALUATIONS, read_table

ROLES = ("champion", "candidate")
FIGURES = ("mean_tokens", "format_rate", "truncation_rate", "valid_rate", "mean_turns")


@dataclass(frozen=True)
class ExamFigures:
    """One checkpoint's metrics on one part of the exam.

    All but `sampled` and `pass_at` describe the greedy answers. `format_rate`: the share of texts in which the grader
    found an answer, right or wrong. `truncation_rate`: the share of texts cut off by the length limit. Both rates are
    None without texts to count. `mean_tokens` counts the end token. `ungraded`: the number of texts on which the grader
    failed. `pass_at`: maps k to pass@k, estimated from `sampled` answers to each problem; empty without samples.
    `mean_turns`, `valid_rate`: the mean number of turns and the share of valid turns; None for single answers.
    """

    part: str
    accuracy: Accuracy
    format_rate: float | None
    truncation_rate: float | None
    mean_tokens: float
    ungraded: int
    by_level: Mapping[str, Accuracy]
    by_subject: Mapping[str, Accuracy]
    sampled: int
    pass_at: Mapping[int, float]
    mean_turns: float | None = None
    valid_rate: float | None = None


def exam_figures(folder: Path) -> dict[str, ExamFigures]:
    """Return the metrics of each exam part, in the exam's order, given the folder of an `evaluate` stage."""
    greedy: Any = read_table(folder / "evaluations.parquet", EVALUATIONS)
    sampled: Any = read_table(folder / "samples.parquet", EVALUATIONS)
    return {
        str(part): figures(str(part), greedy[greedy.benchmark == part], sampled[sampled.benchmark == part])
        for part in greedy.benchmark.unique()
    }


def figures(part: str, greedy: pd.DataFrame, sampled: pd.DataFrame) -> ExamFigures:
    """Return the metrics of a part, given its `greedy` and `sampled` rows of the evaluations table."""
    graded = greedy[greedy.verdict != FAILED]
    samples = int(sampled.groupby("problem_id").size().max()) if len(sampled) else 0
    return ExamFigures(
        part=part,
        accuracy=_accuracy(greedy),
        format_rate=float((graded.verdict != "no_answer").mean()) if len(graded) else None,
        truncation_rate=float((greedy.finish_reason == "length").mean()) if len(greedy) else None,
        mean_tokens=float(greedy.tokens.mean()) if len(greedy) else 0.0,
        ungraded=len(greedy) - len(graded),
        by_level=_by(greedy, "level"),
        by_subject=_by(greedy, "subject"),
        sampled=samples,
        pass_at=_pass_at(sampled, samples),
        mean_turns=float(greedy.turns.mean()) if are_episodes(greedy) else None,
        valid_rate=float((greedy.valid * greedy.turns).sum() / greedy.turns.sum()) if are_episodes(greedy) else None,
    )


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Estimate the probability that at least one of k answers is right, given that `correct` of n answers are right.

    Uses the unbiased estimator 1 − C(n − c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374), equation 1, where
    c is `correct`. Requires 0 ≤ correct ≤ n and 1 ≤ k ≤ n.
    """
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def as_metrics(exam: Mapping[str, ExamFigures]) -> dict[str, float]:
    """Return the metrics under MLflow names, grouped by part, e.g. `exam/math-500/format_rate`.

    In the names of parts, levels and subjects, slashes become `_`, as they would begin another group.
    """
    metrics: dict[str, float] = {}
    for part, its in exam.items():
        named = {"accuracy": its.accuracy.accuracy}
        figures = {name: getattr(its, name) for name in FIGURES}
        named |= {name: figure for name, figure in figures.items() if figure is not None}
        named |= {f"pass_at_{k}": share for k, share in its.pass_at.items()}
        named |= {f"level_{level}": accuracy.accuracy for level, accuracy in its.by_level.items()}
        named |= {f"subject_{subject}": accuracy.accuracy for subject, accuracy in its.by_subject.items()}
        metrics |= {f"exam/{part.replace('/', '_')}/{name.replace('/', '_')}": value for name, value in named.items()}
    return metrics


def _accuracy(rows: pd.DataFrame) -> Accuracy:
    return Accuracy.of_outcomes(outcomes(rows), counted=not are_episodes(rows))


def _by(rows: pd.DataFrame, column: str) -> dict[str, Accuracy]:
    """Return the accuracy for each value of a column, sorted by value; empty if the column has only one value."""
    groups = {str(value): _accuracy(group) for value, group in rows.dropna(subset=[column]).groupby(column)}
    return groups if len(groups) > 1 else {}


def _pass_at(sampled: pd.DataFrame, n: int) -> dict[int, float]:
    """Return, for k = 1, 2, 4, … and n, the mean of pass@k over all problems.

    Ungraded answers are ignored. A problem with fewer than k graded answers is left out of the mean for k.
    """
    graded = sampled.dropna(subset=["correct"]).groupby("problem_id", sort=False)["correct"]
    counts = [(len(answers), int(answers.sum())) for _, answers in graded]
    ks = sorted({n, *(2**power for power in range(n.bit_length()))} - {0})
    shares = {k: [pass_at_k(number, correct, k) for number, correct in counts if k <= number] for k in ks}
    return {k: fmean(its) for k, its in shares.items() if its}
