"""The report's tables are those of the night's folder: answers, flips, solve rates, verdicts, exams."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.evaluation.statistics import Accuracy
from tasks.report.page import render
from tasks.report.queries import (
    benchmark_verdicts,
    exam_details,
    excluded_problems,
    flipped_answers,
    kind_history,
    lesson_losses,
    sampled_answers,
    solve_rates,
    ungraded_answers,
    verdict_counts,
    verdict_table,
    verdicts_by_round,
)
from tasks.stage import commit
from tasks.tables import EVALUATIONS, PROMPTS, SCORES, SOLVE_RATES, table_rows, write_table
from tests.tasks.doubles.night import write_round
from tests.tasks.doubles.tables import prompt, score, solve_rate, write_stage

Night = tuple[Path, dict[str, Any]]


def write_mixed_rounds(folder: Path) -> Path:
    """Two rounds of GSM8K and MBPP, where every problem is a kind of its own; in the second the sandbox failed."""
    asked = [
        prompt(name, group, benchmark=name.split("/")[0], kind=name, level=None)
        for group, name in enumerate(("gsm8k/train/0", "gsm8k/train/1", "mbpp/601"))
    ]
    for number, program in ((1, "crashed"), (2, "grader_failed")):
        verdicts = [("gsm8k/train/0", 0, "correct"), ("gsm8k/train/1", 1, "no_answer"), ("mbpp/601", 2, program)]
        scores = [
            score(name, group, sample, None if verdict == "grader_failed" else float(verdict == "correct"))
            | {"verdict": verdict}
            for name, group, verdict in verdicts
            for sample in range(2)
        ]
        rates = [solve_rate("gsm8k/train/0", 6, 3, level=None), solve_rate("gsm8k/train/1", 4, 0, level=None)]
        stage = folder / f"round-0{number}"
        write_stage(stage / "select_prompts", {"prompts": (PROMPTS, asked)})
        write_stage(stage / "score", {"scores": (SCORES, scores), "solve_rates": (SOLVE_RATES, rates)})
        left_out = {"gsm8k": ["gsm8k/train/7"], "mbpp": [f"mbpp/{600 + n}" for n in range(5 + number)]}
        (stage / "select_prompts" / "excluded.json").write_text(json.dumps(left_out))
    return folder


@pytest.mark.parametrize(("solved", "right"), [(0.0, 0), (0.5, 5), (1.0, 10)])
def test_answers_are_ten_of_different_problems_if_possible_five_right(
    tmp_path: Path, solved: float, right: int
) -> None:
    write_round(tmp_path / "round-01", 1, groups=30, size=4, solved=solved)
    answers = sampled_answers(tmp_path)
    assert [answer.verdict == "correct" for answer in answers] == [True] * right + [False] * (10 - right)
    assert len({answer.question for answer in answers}) == 10
    assert all((answer.reward == 1.0) == answer.text.endswith("#### 12") for answer in answers)


def test_flips_are_five_each_way(night: Night) -> None:
    flips = flipped_answers(night[0])
    assert [flip.gained for flip in flips] == [True] * 5 + [False] * (len(flips) - 5)
    for flip in flips:
        number = int(flip.question.split()[2])
        assert flip.after.endswith(f"#### {number + 3}") is flip.gained
        assert flip.before.endswith(f"#### {number + 3}") is not flip.gained


def test_solve_rates_and_verdicts_are_those_of_the_tables(night: Night) -> None:
    rates, tried = solve_rates(night[0])
    assert rates.shape == (8, 3)
    assert tried.sum() == 3 * 8 * 4
    counts = verdict_counts(night[0])
    assert counts.loc["correct", "training"] == round(rates.sum().sum() * 4)
    assert counts["candidate"].sum() == 600
    table = verdict_table(night[0])
    assert table.index.tolist() == ["arithmetic, training", *(f"arithmetic-{n}, exam" for n in ("1-2", "3", "4"))]
    assert table.loc["arithmetic-1-2, exam"].sum() == 400
    assert table.loc["arithmetic, training"].sum() == 3 * 8 * 4


def test_losses_of_several_lessons_follow_each_other(tmp_path: Path) -> None:
    curves = {"distill-10": [1.0], "distill": [4.0, 3.0], "distill-2": [2.0], "self_distill": [2.5]}
    for path, curve in curves.items():
        (tmp_path / path).mkdir()
        (tmp_path / path / "curve.json").write_text(json.dumps([{"loss": loss} for loss in curve]))
        commit(tmp_path / path, "distill", {}, 1.0)
    losses = lesson_losses(tmp_path)
    assert list(losses) == [4.0, 3.0, 2.5, 2.0, 1.0]
    assert list(losses.index) == [1, 2, 3, 4, 5]


def test_the_verdicts_of_a_mixed_night(own_night: Night) -> None:
    folder, summary = own_night
    for path in folder.glob("round-*"):
        shutil.rmtree(path)
    write_mixed_rounds(folder)
    counts = benchmark_verdicts(folder)
    assert {verdict: n for verdict, n in counts["gsm8k"].items() if n} == {"correct": 4, "no_answer": 4}
    assert {verdict: n for verdict, n in counts["mbpp"].items() if n} == {"crashed": 2, "grader_failed": 2}
    assert verdicts_by_round(folder)["mbpp"]["crashed"].to_dict() == {1: 2, 2: 0}
    table = verdict_table(folder)
    assert table.columns.tolist() == ["correct", "wrong", "no_answer", "crashed", "grader_failed"]
    assert table.loc["mbpp, training"].tolist() == [0, 0, 0, 2, 2]
    page = render(folder, summary)
    picture = page[page.index("<h3>Verdicts, by benchmark") :]
    picture = picture[: picture.index("</svg>")]
    for text in ("gsm8k", "mbpp", "correct", "no answer", "stopped", "not graded"):
        assert f">{text}</text>" in picture
    assert ">wrong</text>" not in picture
    assert "1 problem of gsm8k left out, since the known answer cannot be parsed: gsm8k/train/7." in page
    assert "mbpp/603, mbpp/604, …." in page


def test_a_refill_is_part_of_its_round(tmp_path: Path) -> None:
    """One more problem in round 2, solved twice; and one that was drawn but not yet scored when the night ended."""
    folder = write_mixed_rounds(tmp_path)
    assert solve_rates(folder)[0].loc["gsm8k"].to_dict() == {1: 0.5, 2: 0.5}
    assert kind_history(folder) == [{"gsm8k": (10.0, 3.0)}] * 2
    name, refill = "gsm8k/train/2", folder / "round-02" / "refill-1"
    asked = [prompt(name, 3, benchmark="gsm8k", kind=name, level=None)]
    scores = [score(name, 3, sample, 1.0) for sample in range(2)]
    rates = [solve_rate(name, 2, 2, level=None), solve_rate("gsm8k/train/0", 6, 3, level=None)]
    write_stage(refill / "select_prompts", {"prompts": (PROMPTS, asked)})
    (refill / "select_prompts" / "excluded.json").write_text(json.dumps({"gsm8k": ["gsm8k/train/8"]}))
    write_stage(refill / "score", {"scores": (SCORES, scores), "solve_rates": (SOLVE_RATES, rates)})
    later = [prompt("gsm8k/train/3", 4, benchmark="gsm8k", kind="gsm8k/train/3", level=None)]
    write_stage(folder / "round-02" / "refill-2" / "select_prompts", {"prompts": (PROMPTS, later)})
    assert benchmark_verdicts(folder)["gsm8k"]["correct"] == 4 + 2
    assert verdicts_by_round(folder)["gsm8k"]["correct"].to_dict() == {1: 2, 2: 4}
    assert verdict_counts(folder)["training"].sum() == 14
    assert solve_rates(folder)[1].to_dict() == {"gsm8k": 10, "mbpp": 4}
    assert kind_history(folder) == [{"gsm8k": (10.0, 3.0)}, {"gsm8k": (8.0, 5.0)}]
    excluded = excluded_problems(folder)
    assert excluded["gsm8k"] == ["gsm8k/train/7", "gsm8k/train/8"]
    assert len(excluded["mbpp"]) == 7


def test_exam_answers_that_the_grader_failed_on(own_night: Night) -> None:
    folder, _ = own_night
    whole = {"arithmetic-1-2": (0, 800), "arithmetic-3": (0, 200), "arithmetic-4": (0, 200)}
    assert ungraded_answers(folder) == whole
    file = folder / "evaluate" / "candidate" / "evaluations.parquet"
    rows = table_rows(file, EVALUATIONS)
    rows[0] |= {"verdict": "grader_failed", "correct": None}
    write_table(file, EVALUATIONS, rows)
    assert ungraded_answers(folder) == whole | {"arithmetic-1-2": (1, 800)}


def exam_row(number: int, correct: bool, **other: Any) -> dict[str, Any]:
    fields = {"policy_digest": "x", "benchmark": "math", "problem_id": str(number), "sample": 0, "tokens": 10}
    fields |= {"verdict": "correct" if correct else "wrong", "question": "?", "text": "", "finish_reason": "stop"}
    fields |= {"correct": correct, "level": "1", "subject": None}
    return fields | dict.fromkeys(("value", "turns", "valid")) | other


def test_the_details_of_an_exam(own_night: Night) -> None:
    """What nobody measured is a dash; a night whose exams have no samples has no details."""
    folder, summary = own_night
    assert exam_details(folder).figures == {}
    greedy = [
        exam_row(0, True),
        exam_row(1, False, verdict="no_answer", tokens=64, finish_reason="length"),
        exam_row(2, True, level="2", tokens=22),
        exam_row(3, False, level="2", tokens=24),
    ]
    sampled = [exam_row(0, n == 3, sample=n) for n in range(4)]
    for role, answers, samples in (("champion", greedy, []), ("candidate", greedy[:1], sampled)):
        shutil.rmtree(folder / "evaluate" / role)
        tables = {"evaluations": (EVALUATIONS, answers), "samples": (EVALUATIONS, samples)}
        write_stage(folder / "evaluate" / role, tables)
    picks = folder / "picks" / "candidate"
    picks.mkdir(parents=True)
    (picks / "ranking.json").write_text('{"right": [true, true, false, false, true]}')
    commit(picks, "rank_picks", {}, 1.0)
    details = exam_details(folder)
    assert list(details.figures) == [("math", "champion"), ("math", "candidate")]
    own = details.figures["math", "champion"]
    assert (own.format_rate, own.truncation_rate, own.mean_tokens, own.pass_at) == (0.75, 0.25, 30.0, {})
    assert details.tries == (1, 2, 4)
    assert details.figures["math", "candidate"].pass_at == {1: 0.25, 2: 0.5, 4: 1.0}
    assert details.kinds["math", "level 2"] == {"champion": Accuracy.of(1, 2)}
    assert details.picks == {"candidate": Accuracy.of(3, 5)}
    page = " ".join(render(folder, summary).split())
    assert "<small>champion</small></th><td>75 %</td><td>25 %</td><td>30</td><td>–</td><td>–</td><td>–</td>" in page
