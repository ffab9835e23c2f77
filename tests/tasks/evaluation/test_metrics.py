"""The exam's figures: numbers by hand, pass@k against drawing all subsets, and what cannot be graded."""

import itertools
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric

from tasks.evaluation.metrics import as_metrics, figures, pass_at_k
from tasks.evaluation.statistics import Accuracy
from tasks.monitoring.tracking import metric_name
from tasks.tables import EVALUATIONS, read_table, write_table
from tests.tasks.doubles.exam import row

NOTHING: list[dict[str, Any]] = []


def table(folder: Path, name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """As every stage gets it: written, checked and read again."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / f"{name}.parquet", EVALUATIONS, rows)
    return read_table(folder / f"{name}.parquet", EVALUATIONS)


def figures_of(folder: Path, greedy: list[dict[str, Any]], sampled: list[dict[str, Any]] = NOTHING) -> Any:
    return figures(table(folder, "evaluations", greedy), table(folder, "samples", sampled))


def test_format_truncation_and_length_by_hand(tmp_path: Path) -> None:
    rows = [
        row("a", tokens=5),
        row("b", "wrong", tokens=7),
        row("c", "no_answer", tokens=20, finish_reason="length"),
        row("d", "timeout", tokens=20, finish_reason="length"),
        row("e", "grader_failed", tokens=8),
    ]
    its = figures_of(tmp_path, rows)
    assert its.items() >= asdict(Accuracy.of(1, 4)).items()
    assert its["format_rate"] == 3 / 4  # of those that the grader could judge: a timeout is an answer
    assert its["truncation_rate"] == 2 / 5
    assert its["mean_tokens"] == 12.0
    assert its["ungraded"] == 1
    assert (its["by_level"], its["by_subject"], its["sampled"], its["pass_at"]) == ({}, {}, 0, {})


def test_accuracy_by_level_and_subject(tmp_path: Path) -> None:
    rows = [
        row("a", level="1", subject="algebra"),
        row("b", "wrong", level="1", subject="geometry"),
        row("c", level="5", subject="algebra"),
        row("d", "grader_failed", level="5", subject="algebra"),
        row("e", "wrong"),  # of no level
    ]
    its = figures_of(tmp_path, rows)
    assert its["by_level"] == {"1": asdict(Accuracy.of(1, 2)), "5": asdict(Accuracy.of(1, 1))}
    assert its["by_subject"] == {"algebra": asdict(Accuracy.of(2, 2)), "geometry": asdict(Accuracy.of(0, 1))}
    assert figures_of(tmp_path / "one", [row("a", level="1"), row("b", level="1")])["by_level"] == {}


def test_a_benchmarks_levels_begin_no_group_of_charts(tmp_path: Path) -> None:
    rows = [row("a", level="easy (1)", subject="C&O"), row("b", "wrong", level="1/plus", subject="räume")]
    metrics = as_metrics({"own-easy (1)": figures_of(tmp_path, rows)})
    assert metrics["exam/own-easy (1)/level_easy (1)"] == 1.0
    assert metrics["exam/own-easy (1)/level_1_plus"] == 0.0
    assert metrics["exam/own-easy (1)/subject_C&O"] == 1.0
    for name, value in metrics.items():
        _validate_metric(metric_name(name), value, 0, 0)  # raises


def test_an_exam_without_any_graded_answer_has_no_rates(tmp_path: Path) -> None:
    its = figures_of(tmp_path, [row("a", "grader_failed")])
    assert (its["n"], its["format_rate"], its["truncation_rate"]) == (0, None, 0.0)
    assert figures_of(tmp_path / "none", [])["truncation_rate"] is None
    assert "exam/math-500/format_rate" not in as_metrics({"math-500": its})


def test_pass_at_k_by_hand(tmp_path: Path) -> None:
    """Chen et al. 2021, equation 1: of 4 answers 1 correct, pass@2 = 1 − C(3, 2) / C(4, 2) = 1/2."""
    assert pass_at_k(4, 1, 2) == 0.5
    sampled = [
        *(row("a", "correct" if sample == 2 else "wrong", sample) for sample in range(4)),
        *(row("b", "wrong", sample) for sample in range(4)),
    ]
    its = figures_of(tmp_path, [row("a", "wrong"), row("b", "wrong")], sampled)
    assert its["sampled"] == 4
    assert its["pass_at"] == {1: fmean([1 / 4, 0]), 2: fmean([1 / 2, 0]), 4: fmean([1, 0])}
    assert (its["accuracy"], its["n"]) == (0.0, 2)  # sampled answers decide nothing
    assert as_metrics({"math-500": its})["exam/math-500/pass_at_2"] == 0.25


def test_ungraded_answers_do_not_count(tmp_path: Path) -> None:
    verdicts = {"a": ["correct", "grader_failed", "wrong"], "b": ["grader_failed"] * 3}
    sampled = [row(name, verdict, n) for name, its in verdicts.items() for n, verdict in enumerate(its)]
    assert figures_of(tmp_path, [row("a"), row("b")], sampled)["pass_at"] == {1: 0.5, 2: 1.0}


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_all_choices_of_k_with_a_correct_one(drawn: tuple[int, int, int]) -> None:
    n, correct, k = drawn
    choices = list(itertools.combinations([True] * correct + [False] * (n - correct), k))
    assert pass_at_k(n, correct, k) == pytest.approx(float(Fraction(sum(map(any, choices)), len(choices))))
