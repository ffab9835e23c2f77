"""The report's tables are those of the night's folder: answers, flips, solve rates, verdicts."""

import shutil
from pathlib import Path

import pytest

from tasks.monitoring.alarms import Alarm, exam_alarms
from tasks.report.page import render
from tasks.report.queries import (
    benchmark_verdicts,
    exam_verdicts,
    excluded_problems,
    flipped_answers,
    sampled_answers,
    solve_rates,
)
from tasks.tables import EVALUATIONS, PROMPTS, SCORES, SOLVE_RATES, table_rows, write_table
from tests.tasks.doubles.night import TARGET, Night, write_round
from tests.tasks.doubles.tables import prompt, score, solve_rate, write_stage


def write_mixed_rounds(folder: Path) -> Path:
    """Two rounds of GSM8K and MBPP, where every problem is a kind of its own; in the second the sandbox failed.

    The second has a refill with one more problem, solved twice, and another that was not scored when the night ended.
    """
    asked = [
        prompt(name, group, benchmark=name.split("/")[0], kind=name, level=None)
        for group, name in enumerate(("gsm8k/train/0", "gsm8k/train/1", "mbpp/601", "gsm8k/train/2", "gsm8k/train/3"))
    ]
    rates = [solve_rate("gsm8k/train/0", 6, 3, level=None), solve_rate("gsm8k/train/1", 4, 0, level=None)]
    for number, program in ((1, "crashed"), (2, "grader_failed")):
        verdicts = [("gsm8k/train/0", 0, "correct"), ("gsm8k/train/1", 1, "no_answer"), ("mbpp/601", 2, program)]
        scores = [
            score(name, group, sample, None if verdict == "grader_failed" else float(verdict == "correct"))
            | {"verdict": verdict}
            for name, group, verdict in verdicts
            for sample in range(2)
        ]
        stage = folder / f"round-0{number}"
        left_out = {"gsm8k": ["gsm8k/train/7"], "mbpp": [f"mbpp/{600 + n}" for n in range(5 + number)]}
        write_stage(stage / "select_prompts", {"prompts": (PROMPTS, asked[:3])}, excluded=left_out)
        write_stage(stage / "score", {"scores": (SCORES, scores), "solve_rates": (SOLVE_RATES, rates)})
    refill, scores = folder / "round-02" / "refill-1", [score("gsm8k/train/2", 3, sample, 1.0) for sample in range(2)]
    write_stage(refill / "select_prompts", {"prompts": (PROMPTS, asked[3:4])})
    rates = [solve_rate("gsm8k/train/2", 2, 2, level=None), rates[0]]
    write_stage(refill / "score", {"scores": (SCORES, scores), "solve_rates": (SOLVE_RATES, rates)})
    write_stage(folder / "round-02" / "refill-2" / "select_prompts", {"prompts": (PROMPTS, asked[4:])})
    return folder


@pytest.mark.parametrize(("solved", "right"), [(0.0, 0), (0.5, 5), (1.0, 10)])
def test_answers_are_ten_of_different_problems_if_possible_five_right(
    tmp_path: Path, solved: float, right: int
) -> None:
    write_round(tmp_path / "round-01", 1, groups=30, size=4, solved=solved)
    answers = sampled_answers(tmp_path)
    assert [answer["verdict"] == "correct" for answer in answers] == [True] * right + [False] * (10 - right)
    assert len({answer["question"] for answer in answers}) == 10
    assert all((answer["reward"] == 1.0) == answer["text"].endswith("#### 12") for answer in answers)


def test_a_solution_that_joined_a_group_is_no_answer_of_the_student(tmp_path: Path) -> None:
    write_round(tmp_path / "round-01", 1, groups=3, size=2, solved=0.0)
    file = tmp_path / "round-01" / "score" / "scores.parquet"
    rows = table_rows(file, SCORES)
    rows[0] |= {"verdict": "given"}
    write_table(file, SCORES, rows)
    assert {answer["verdict"] for answer in sampled_answers(tmp_path)} == {"wrong", "no_answer"}
    assert len(sampled_answers(tmp_path)) == len(rows) - 1


def test_flips_are_five_each_way_those_of_the_target_first(night: Night) -> None:
    assert flipped_answers(night[0], "arithmetic-3")[0]["benchmark"] == "arithmetic-3"
    flips = flipped_answers(night[0], TARGET)
    assert [flip["benchmark"] for flip in flips if flip["gained"]] == [TARGET] * 5
    assert [flip["gained"] for flip in flips] == [True] * 5 + [False] * (len(flips) - 5)
    for flip in flips:
        number = int(flip["question"].split()[2])
        assert flip["text_after"].endswith(f"#### {number + 3}") is flip["gained"]
        assert flip["text"].endswith(f"#### {number + 3}") is not flip["gained"]


def test_solve_rates_and_verdicts_are_those_of_the_tables(night: Night) -> None:
    rates = solve_rates(night[0])
    assert (len(rates), rates["answers"].sum()) == (8, 3 * 8 * 4)
    assert rates["first"].mean() < rates["last"].mean()
    counts = exam_verdicts(night[0])
    parts = [(f"arithmetic-{level}", role) for level in ("1-2", "3", "4") for role in ("champion", "candidate")]
    assert list(counts) == parts
    assert sum(benchmark_verdicts(night[0])["arithmetic"].values()) == 3 * 8 * 4
    assert sum(counts["arithmetic-1-2", "candidate"].values()) == 400


def test_a_mixed_night_with_a_refill(tmp_path: Path) -> None:
    folder = write_mixed_rounds(tmp_path)
    counts = benchmark_verdicts(folder)
    assert {verdict: n for verdict, n in counts["gsm8k"].items() if n} == {"correct": 6, "no_answer": 4}
    assert {verdict: n for verdict, n in counts["mbpp"].items() if n} == {"crashed": 2, "grader_failed": 2}
    rates = solve_rates(folder)
    assert rates.loc["gsm8k"].tolist() == pytest.approx([10, 0.5, 4 / 6, 4 / 6])
    assert rates.loc["mbpp", ["answers", "first"]].tolist() == [2, 0.0]  # what the grader failed on is not counted
    assert excluded_problems(folder) == {"gsm8k": ["gsm8k/train/7"], "mbpp": [f"mbpp/{600 + n}" for n in range(7)]}


def test_the_page_names_verdicts_and_what_was_left_out(own_night: Night) -> None:
    folder, summary = own_night
    for path in folder.glob("round-*"):
        shutil.rmtree(path)
    write_mixed_rounds(folder)
    page = render(folder, summary | {"verdicts": benchmark_verdicts(folder)})
    assert '<th scope="col">grader failed</th>' in page
    assert "out of memory" not in page  # never given
    assert "1 problem of gsm8k left out, since the known answer cannot be parsed: gsm8k/train/7." in page
    assert "mbpp/603, mbpp/604, …." in page


def test_exam_answers_that_the_grader_failed_on(own_night: Night) -> None:
    folder, _ = own_night
    assert exam_alarms(exam_verdicts(folder)) == []
    file = folder / "evaluate" / "candidate" / "evaluations.parquet"
    rows = table_rows(file, EVALUATIONS)
    rows[0] |= {"verdict": "grader_failed", "correct": None}
    write_table(file, EVALUATIONS, rows)
    said = "The grader failed on exam answers, which were left out: 1 of 400 of arithmetic-1-2 (candidate)."
    assert exam_alarms(exam_verdicts(folder)) == [Alarm("exam_graders_failing", False, said)]
