"""Your own questions: how the file is read and divided, and how answers are graded."""

import json
from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.questions import Questions
from rewards.verifier import Attempt, Problem

ROWS = [{"question": f"{n} dozen?", "answer": 12 * n, "solution": f"{n} × 12"} for n in range(60)]


def written(folder: Path, name: str, text: str) -> Questions:
    (folder / name).write_text(text)
    return Questions(str(folder / name))


def test_a_quarter_is_for_the_exam_and_more_questions_move_none(tmp_path: Path) -> None:
    lines = [json.dumps(row) + "\n" for row in ROWS]
    some, all_ = (written(tmp_path, f"{n}.jsonl", "".join(lines[:n])) for n in (30, 60))
    exam = {problem.problem_id for problem in all_.problems("test")}
    assert {problem.problem_id for problem in some.problems("test")} <= exam
    assert 8 <= len(exam) <= 22
    assert len(exam) + len(all_.problems("train")) == 60
    assert all_.solutions()[0][1] == "0 × 12\nAnswer: 0"


def test_all_forms_of_the_file_are_read_alike(tmp_path: Path) -> None:
    csv = "".join(f"{row['question']},{row['answer']},{row['solution']}\n" for row in ROWS)
    one = written(tmp_path, "q.csv", f"question,answer,solution\n{csv}")
    other = written(tmp_path, "q.json", json.dumps(ROWS))
    assert one.problems("train") == other.problems("train")
    assert one.solutions() == other.solutions()


@pytest.mark.parametrize(
    ("answer", "completion", "verdict"),
    [
        (1200, "Answer: 1,200", "correct"),
        ("1,200", "So 1200 apples.\nAnswer: $1200.", "correct"),
        (1200, "Answer: 1200 apples", "wrong"),
        (5, "Answer: minus 5", "wrong"),
        (-5, "Answer: 5", "wrong"),
        ("12.03.2024", "Answer: 01.01.1999", "wrong"),
        ("12.03.2024", "Answer: 12.03.2024.", "correct"),
        ("3,5", "Answer: 2,5", "wrong"),
        ("1/2", "Answer: 1.2", "wrong"),
        (".5", "Answer: 0.5", "correct"),
        (0.5, "Answer: **.5**", "correct"),
        (12, "**Answer:** 12", "correct"),
        (12, "Answer: **12**.", "correct"),
        (12, "Answer: (12)!", "correct"),
        (12, 'Answer: "$12$"', "correct"),
        ("Paris", "Answer: **Paris**.", "correct"),
        ("$5", "Answer: 5", "correct"),
        ("$5", "Answer: €5", "wrong"),
        ("$5", "Answer: 5%", "wrong"),
        ("5 €", "Answer: 5", "correct"),
        ("€5", "Answer: 5 €", "correct"),
        ("5%", "Answer: 5 %", "correct"),
        ("$5", "Answer: \\$5", "correct"),
        (5, "Answer: +5", "correct"),
        (-5, "Answer: –5", "correct"),
        (-5, "Answer: - 5", "correct"),
        (5, "Answer: 5 6", "wrong"),
        ("5 €", "Answer: 5 %", "wrong"),
        ("Rubik's cube", "Answer: Rubik’s cube", "correct"),
        ("Caf\u00e9", "Answer: Cafe\u0301", "correct"),
        ("007", "Answer: 7", "wrong"),
        ("007", "Answer: 007.", "correct"),
        ("C", "Answer: C++", "wrong"),
        ("A", "Answer: (a).", "correct"),
        (1200, "Answer: 1200 or 1300", "wrong"),
        ("Room 12", "Answer: 12", "wrong"),
        (["York", "City of York"], "Answer: the city of York", "correct"),
        (12, "3 * 4 = 12\n#### 12", "correct"),
        (12, "The answer is: **12**.", "correct"),
        (12, "The answer is 12, and the answer is 13.", "wrong"),
        (12, "#### 12\nAnswer: 13", "wrong"),
        (12, "Answer: 13\n#### 12", "wrong"),
        ("####", "Answer: ####", "correct"),
        ("York", "", "no_answer"),
    ],
)
def test_an_answer_is_a_name_or_a_value(tmp_path: Path, answer: object, completion: str, verdict: str) -> None:
    rows = [{"question": f"{n}?", "answer": answer} for n in range(9)]
    benchmark = written(tmp_path, "q.json", json.dumps(rows))
    problem: Problem = benchmark.problems("train")[0]
    assert benchmark.score([Attempt(problem, completion)])[0].verdict == verdict


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        (
            "q.json",
            '[{"question": "2 + 2?"}]',
            "row 1: every row needs a `question` and an `answer`; there is: question",
        ),
        ("q.csv", "question;answer\n2 + 2?;4\n", "row 2: every row needs .*; there is: question;answer"),
        ("q.jsonl", '{"question": "2 + 2?", "answer": "4"}', "too few questions"),
        ("q.csv", "", "holds no rows"),
        ("q.csv", "question,answer\n2, 3 or 4?,4\n", "row 2: more fields than columns"),
        ("q.json", '[{"question": "2 + 2?", "answer": null}]', "every row needs a `question` and an `answer`"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, name: str, text: str, error: str) -> None:
    benchmark = written(tmp_path, name, text)
    with pytest.raises(InputError, match=error) as raised:
        benchmark.problems("train"), benchmark.problems("test")
    assert "\n" not in str(raised.value)
