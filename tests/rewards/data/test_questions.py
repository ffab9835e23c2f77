"""Your own questions: how the file is read and divided. How answers are graded: `answers/questions.toml`."""

import json
from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.data.questions import Questions

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


def test_an_answer_may_be_a_number_or_a_list(tmp_path: Path) -> None:
    rows = [{"question": "0?", "answer": 0.5}, {"question": "1?", "answer": ["York", " City of York "]}]
    problems = written(tmp_path, "q.json", json.dumps(rows)).problems("train")
    assert [problem.truth for problem in problems] == ['["0.5"]', '["York", "City of York"]']


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
