"""The exam's metrics: accuracy, pass@k, accuracy by level and subject, format, truncation, length.

The decision uses only the greedy answers; `tasks/evaluation/statistics.py` has the statistical tests.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from tasks.evaluation.statistics import Accuracy, are_episodes, outcomes
from tasks.rollouts.verdicts import FAILED
from tasks.tables import EVALUATIONS, read_table

ROLES = ("champion", "candidate")
FIGURES = ("accuracy", "mean_tokens", "format_rate", "truncation_rate", "valid_rate", "mean_turns")


def exam_figures(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the metrics of each exam part, in the exam's order, given the folder of an `evaluate` stage."""
    greedy: Any = read_table(folder / "evaluations.parquet", EVALUATIONS)
    sampled: Any = read_table(folder / "samples.parquet", EVALUATIONS)
    return {
        str(part): figures(greedy[greedy.benchmark == part], sampled[sampled.benchmark == part])
        for part in greedy.benchmark.unique()
    }


def figures(greedy: pd.DataFrame, sampled: pd.DataFrame) -> dict[str, Any]:
    """Return the metrics of a part as JSON data, given its `greedy` and `sampled` rows of the evaluations table.

    These are the fields of the greedy answers' `Accuracy`, and the following. All but `sampled` and `pass_at` describe
    the greedy answers. `format_rate`: the share of texts in which the grader found an answer, right or wrong.
    `truncation_rate`: the share of texts cut off by the length limit. Both rates are None without texts to count.
    `mean_tokens` counts the end token. `ungraded`: the number of texts on which the grader failed. `pass_at`: maps k to
    pass@k, estimated from `sampled` answers to each problem; empty without samples. `mean_turns`, `valid_rate`: the
    mean number of turns and the share of valid turns; None for single answers.
    """
    graded = greedy[greedy.verdict != FAILED]
    samples = int(sampled.groupby("problem_id").size().max()) if len(sampled) else 0
    played = are_episodes(greedy)
    return _accuracy(greedy) | {
        "format_rate": float((graded.verdict != "no_answer").mean()) if len(graded) else None,
        "truncation_rate": float((greedy.finish_reason == "length").mean()) if len(greedy) else None,
        "mean_tokens": float(greedy.tokens.mean()) if len(greedy) else 0.0,
        "ungraded": len(greedy) - len(graded),
        "by_level": _by(greedy, "level"),
        "by_subject": _by(greedy, "subject"),
        "sampled": samples,
        "pass_at": _pass_at(sampled, samples),
        "mean_turns": float(greedy.turns.mean()) if played else None,
        "valid_rate": float((greedy.valid * greedy.turns).sum() / greedy.turns.sum()) if played else None,
    }


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Estimate the probability that at least one of k answers is right, given that `correct` of n answers are right.

    Uses the unbiased estimator 1 − C(n − c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374), equation 1, where
    c is `correct`. Requires 0 ≤ correct ≤ n and 1 ≤ k ≤ n.
    """
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def as_metrics(exam: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the metrics under MLflow names, grouped by part, e.g. `exam/math-500/format_rate`.

    In the names of parts, levels and subjects, slashes become `_`, as they would begin another group.
    """
    metrics: dict[str, float] = {}
    for part, its in exam.items():
        named = {name: its[name] for name in FIGURES if its[name] is not None}
        named |= {f"pass_at_{k}": share for k, share in its["pass_at"].items()}
        named |= {f"level_{level}": found["accuracy"] for level, found in its["by_level"].items()}
        named |= {f"subject_{subject}": found["accuracy"] for subject, found in its["by_subject"].items()}
        metrics |= {f"exam/{part.replace('/', '_')}/{name.replace('/', '_')}": value for name, value in named.items()}
    return metrics


def _accuracy(rows: pd.DataFrame) -> dict[str, Any]:
    return asdict(Accuracy.of_outcomes(outcomes(rows), counted=not are_episodes(rows)))


def _by(rows: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
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
