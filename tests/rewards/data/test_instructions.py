"""Instructions whose form a program can check: what has the form, and what has not."""

import pytest

from rewards.data.instructions import FORMS, Instructions
from rewards.verifier import Attempt

PROBLEMS = {problem.problem_id: problem for problem in Instructions().problems("test")}


def verdicts(form: str, *answers: str) -> list[str]:
    problem = PROBLEMS[f"instructions/{form}/the sea"]
    return [score.verdict for score in Instructions().score([Attempt(problem, answer) for answer in answers])]


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        ("sentence", ["The sea is wide.", " It is 3.5 km deep! "], ["It is deep. It is cold.", "It is so"]),
        ("question", ["Have you seen it?"], ["I saw it today.", "Is it deep? I think so."]),
        ("word", ["It is Often cold there."], ["It is rarely cold there.", "It is oftener cold there."]),
        ("completion", ["I like the sea because it is blue.", "the sea because I swim"], ["Because it is blue."]),
        ("yes or no", ["Yes", "no."], ["Yes, I do.", "Maybe"]),
    ],
)
def test_what_has_the_form(form: str, right: list[str], wrong: list[str]) -> None:
    assert verdicts(form, *right, *wrong) == ["correct"] * len(right) + ["wrong"] * len(wrong)


@pytest.mark.parametrize("answer", ["", "?", "#### 12", "often"])
def test_fewer_than_three_words_are_no_answer(answer: str) -> None:
    assert {*verdicts("question", answer), *verdicts("word", answer)} == {"no_answer"}


def test_the_exam_is_the_same_150_problems_with_the_form_as_subject() -> None:
    assert len(PROBLEMS) == 150
    assert {problem.subject for problem in PROBLEMS.values()} == {*FORMS}
    asked = [Instructions().prompt(problem) for problem in PROBLEMS.values()]
    assert len({*asked}) == 150
    assert asked[0] == "Write exactly one sentence about bees."
