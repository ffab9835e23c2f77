"""Which of the day's lines become examples, as which tokens, and how the others are counted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from conf.schema import StudentConfig
from models.hf.loading import load_tokenizer
from tasks.training.examples import ExampleReader
from tests.tasks.doubles.student import END
from tests.tasks.doubles.tables import correction, feedback, lesson_table, messages, preference

EXAM = ("What is 3 + 4?",)
ASKED = "User: How are you?\nAssistant:"


def reader(student: Path, max_tokens: int = 1000) -> ExampleReader:
    return ExampleReader(student, StudentConfig(), EXAM, max_tokens)


def text_of(student: Path, tokens: Sequence[int]) -> str:
    return str(load_tokenizer(student).decode(list(tokens)))


def test_a_correction_is_a_pick_of_what_the_owner_wrote(student: Path) -> None:
    lines = reader(student)
    (found,) = lines.corrections(lesson_table(correction("How are you?", "Bad.", "Fine.")))
    assert text_of(student, found.prompt) == ASKED
    assert [(text_of(student, each[:-1]), each[-1]) for each in found.answers] == [("Fine.", END), ("Bad.", END)]
    assert found.chosen == 0
    assert dict(lines.counts) == {"lines": 1, "used": 1, "exam": 0, "too_long": 0}


def test_lines_with_an_exam_question_are_never_examples(student: Path) -> None:
    """Nor those whose earlier turns have one. Each kind of lesson: tests/flows/evaluation/test_exam_is_closed.py."""
    lines, before = reader(student), correction("", "Bad.", "8", messages=messages(EXAM[0], "7", "And now?"))
    told = correction(f"Tell me: {EXAM[0]}", "Bad.", "7")
    found = lines.corrections(lesson_table(told, correction("Hm?", "Bad.", "7"), before))
    assert [text_of(student, one.prompt) for one in found] == ["User: Hm?\nAssistant:"]
    assert dict(lines.counts) == {"lines": 3, "used": 1, "exam": 2, "too_long": 0}


def test_an_answer_that_does_not_fit_is_left_out(student: Path) -> None:
    whole = len(ASKED) + len("Fine.") + 1
    one = lesson_table(correction("How are you?", "Bad.", "Fine."))
    assert len(reader(student, whole).corrections(one)) == 1
    long = reader(student, whole).corrections(lesson_table(correction("How are you?", "Bad. " * 9, "Fine.")))
    assert text_of(student, long[0].answers[1]) == "Bad. B"  # its beginning
    lines = reader(student, whole - 1)
    assert lines.corrections(one) == []
    assert dict(lines.counts) == {"lines": 1, "used": 0, "exam": 0, "too_long": 1}


def test_feedback_keeps_its_size(student: Path) -> None:
    lines, values = reader(student), {"a": 1.0, "b": 0.25, "c": -0.1, "d": 0.0}
    found = lines.feedback(lesson_table(*(feedback(asked, "x", value) for asked, value in values.items())))
    assert [(text_of(student, one.prompt)[6], one.rating) for one in found] == [("a", 1.0), ("b", 0.25), ("c", -0.1)]
    assert dict(lines.counts) == {"lines": 4, "used": 3, "exam": 0, "too_long": 0, "neutral": 1}


def test_a_pick_has_each_other_answer_once_and_at_least_one(student: Path) -> None:
    lines = reader(student)
    shown = ["no", "yes", "yes", "no", "hm"]
    (found,) = lines.picks(lesson_table(preference("a", shown, 1), preference("a", ["yes", "yes"], 0)))
    assert [text_of(student, answer[:-1]) for answer in found.answers] == ["yes", "no", "hm"]
    assert found.chosen == 0
    assert dict(lines.counts) == {"lines": 2, "used": 1, "exam": 0, "too_long": 0, "no_choice": 1}


def test_conversations_that_judge_are_never_examples(student: Path) -> None:
    picks, corrections, ratings = (reader(student) for _ in range(3))
    picks.picks(lesson_table(*(preference("a", ["yes", "no"], 0, held_out=judges) for judges in (True, False))))
    corrections.corrections(lesson_table(*(correction("a", "no", "yes", held_out=judges) for judges in (True, False))))
    ratings.feedback(lesson_table(*(feedback("a", "yes", 1.0, held_out=judges) for judges in (True, False))))
    for lines in (picks, corrections, ratings):
        assert (lines.counts["held_out"], lines.counts["used"], lines.lessons) == (1, 1, ["1"])


def test_of_a_pick_only_what_fits_is_learned(student: Path) -> None:
    room = len("User: a\nAssistant:") + 4
    lines = reader(student, room)
    shown = ["yes", "no", "a long one"], ["a long one", "no"], ["no", "long"]
    found = lines.picks(lesson_table(*(preference("a", responses, 0) for responses in shown)))
    assert [len(one.answers) for one in found] == [2]
    assert (lines.counts["used"], lines.counts["too_long"], lines.counts["no_choice"]) == (1, 1, 1)


@pytest.mark.parametrize("piece", [2, 3, 5, 6, 7, 100])
def test_every_token_of_a_text_is_predicted_once_but_the_first(student: Path, piece: int) -> None:
    text = "seven w"
    found = reader(student).words(lesson_table({"text": text}), piece)
    assert text_of(student, [token for _, rest in found for token in rest]) == text[1:]
    assert all(len(first) == 1 and 1 <= len(rest) <= piece - 1 for first, rest in found)
    before = text_of(student, [first[0] for first, _ in found])
    starts = range(0, len(text) - 1, piece - 1)
    assert before == "".join(text[at] for at in starts)


def test_text_of_one_token_or_none_or_the_exams_is_counted(student: Path) -> None:
    lines = reader(student)
    texts = ("a", "", "ab", f"Tell me: {EXAM[0]} It is 7.")
    assert lines.words(lesson_table(*({"text": text} for text in texts)), 256) == [([64], [65])]
    assert dict(lines.counts) == {"lines": 4, "used": 1, "exam": 1, "too_long": 0, "too_short": 2}
