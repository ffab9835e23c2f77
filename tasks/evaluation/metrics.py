"""What an exam shows besides who won: pass@k, accuracy by level and subject, format, truncation, length.

The decision is made by the greedy answers alone (`tasks/evaluation/statistics.py`); nothing here takes part in it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.evaluation.statistics import Accuracy, wilson
from tasks.rollouts.verdicts import FAILED
from tasks.stage import committed
from tasks.tables import EVALUATIONS, read_table

SITTERS = ("champion", "distilled", "candidate")


@dataclass(frozen=True)
class ExamFigures:
    """One checkpoint on one part of the exam.

    `accuracy`, `by_level` and `by_subject` are the greedy answers'. `format_rate` is the share of them in which an
    answer was found, right or wrong; `truncation_rate` the share that was cut off by its length; both None without any.
    `mean_tokens`: their length, the end token included. `ungraded`: those on which the grader itself failed.
    `pass_at`: pass@k by k, of the answers `sampled` of each problem; empty where there were none.
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


def exam_figures(folder: Path) -> dict[str, ExamFigures]:
    """The figures of what the stage `evaluate` wrote into a folder, by part, in the exam's order."""
    tables: list[Any] = [read_table(folder / f"{name}.parquet", EVALUATIONS) for name in ("evaluations", "samples")]
    greedy, sampled = tables
    return {
        str(part): figures(str(part), greedy[greedy.benchmark == part], sampled[sampled.benchmark == part])
        for part in greedy.benchmark.unique()
    }


def night_figures(night: Path) -> dict[str, dict[str, ExamFigures]]:
    """The same for all three that sat a night's exam, as far as they have: by sitter, then by part."""
    folders = {who: night / "evaluate" / who for who in SITTERS}
    return {who: exam_figures(folder) for who, folder in folders.items() if (folder / "samples.parquet").exists()}


def figures(part: str, greedy: pd.DataFrame, sampled: pd.DataFrame) -> ExamFigures:
    """The figures of a part. `greedy`, `sampled`: its rows of the evaluations table."""
    graded = greedy[greedy.verdict != FAILED]
    tries = sampled.groupby("problem_id", sort=False).size()
    return ExamFigures(
        part=part,
        accuracy=_accuracy(greedy),
        format_rate=float((graded.verdict != "no_answer").mean()) if len(graded) else None,
        truncation_rate=float((greedy.finish_reason == "length").mean()) if len(greedy) else None,
        mean_tokens=float(greedy.tokens.mean()) if len(greedy) else 0.0,
        ungraded=len(greedy) - len(graded),
        by_level=_by(greedy, "level"),
        by_subject=_by(greedy, "subject"),
        sampled=int(tries.max()) if len(tries) else 0,
        pass_at=_pass_at(sampled, int(tries.max()) if len(tries) else 0),
    )


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The probability that at least one of k answers is correct, from n answers of which `correct` are.

    The unbiased estimator 1 − C(n − c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374), equation 1. Raises
    ValueError unless 0 ≤ correct ≤ n and 1 ≤ k ≤ n.
    """
    if not (0 <= correct <= n and 1 <= k <= n):
        raise ValueError(f"pass@{k} of {correct} correct answers among {n}")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def as_metrics(found: Mapping[str, ExamFigures]) -> dict[str, float]:
    """The figures as flat names, a group for each part: `exam/math-500/format_rate`.

    What MLflow takes in no name, as a benchmark's levels and subjects may have it, is `_`.
    """
    metrics: dict[str, float] = {}
    for part, own in found.items():
        shares = {"format_rate": own.format_rate, "truncation_rate": own.truncation_rate}
        named = {"accuracy": own.accuracy.accuracy, "mean_tokens": own.mean_tokens}
        named |= {name: share for name, share in shares.items() if share is not None}
        named |= {f"pass_at_{k}": share for k, share in own.pass_at.items()}
        named |= {f"level_{level}": accuracy.accuracy for level, accuracy in own.by_level.items()}
        named |= {f"subject_{subject}": accuracy.accuracy for subject, accuracy in own.by_subject.items()}
        metrics |= {f"exam/{_plain(part)}/{_plain(name)}": value for name, value in named.items()}
    return metrics


def ranking_accuracies(night: Path) -> dict[str, Accuracy]:
    """The share of the owner's held-out picks that each of the three ranks right itself (`tasks/reward_model/rank.py`).

    By sitter; without those of whom it is not known. Chance is one in as many answers as were shown.
    """
    found: dict[str, Accuracy] = {}
    for who in SITTERS:
        if ranked := committed(night / "picks" / who):
            right: Sequence[bool] = ranked.read_json("ranking.json")["right"]
            found[who] = wilson(sum(right), len(right))
    return found


def _plain(name: str) -> str:
    """A slash would begin another group."""
    return re.sub(r"[^\w.\- :]", "_", name)


def _accuracy(rows: pd.DataFrame) -> Accuracy:
    correct = rows.correct.dropna()
    return wilson(int(correct.sum()), len(correct))


def _by(rows: pd.DataFrame, column: str) -> dict[str, Accuracy]:
    """Accuracies by a column's values, sorted; nothing where all rows are of one, which says no more than the whole."""
    groups = {str(value): _accuracy(own) for value, own in rows.dropna(subset=[column]).groupby(column)}
    return groups if len(groups) > 1 else {}


def _pass_at(sampled: pd.DataFrame, n: int) -> dict[int, float]:
    """The mean over the problems of pass@k, for k = 1, 2, 4, … and n.

    Answers that could not be graded are none; a problem that has fewer than k left says nothing of pass@k.
    """
    graded = sampled.dropna(subset=["correct"]).groupby("problem_id", sort=False)["correct"]
    counts = [(len(own), int(own.sum())) for _, own in graded]
    found: dict[int, float] = {}
    for k in sorted({n, *(2**power for power in range(n.bit_length()))} - {0}):
        known = [pass_at_k(number, correct, k) for number, correct in counts if k <= number]
        if k <= n and known:
            found[k] = math.fsum(known) / len(known)
    return found
