"""The generated day: right lessons, one right pick in five, marked as generated, and nothing of the exam."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.sections.benchmark import LEVELS
from rewards.arithmetic import Arithmetic
from rewards.data.arithmetic_exercises import exercises
from rewards.data.synthetic_journal import KINDS, Lessons, generated_lines
from rewards.verifier import Attempt, Problem

AT = "2026-11-20"
EXAM_QUESTIONS = {problem.question for problem in Arithmetic().problems("test")}
EXAM_PROMPTS = {Arithmetic().prompt(problem) for problem in Arithmetic().problems("test")}
ALL: list[Lessons] = [*KINDS]


def verdict(response: str, truth: str) -> str:
    [score] = Arithmetic().score([Attempt(Problem("", "arithmetic", "", truth), response)])
    return score.verdict


def number(response: str) -> str:
    """What stands after the marker, if anything does."""
    return response.rpartition("####")[2].strip()


@pytest.mark.parametrize("level", LEVELS)
def test_a_correction_is_right_and_what_it_corrects_is_not(level: str) -> None:
    for line in generated_lines("corrections", "a day", 300, (level,), AT):
        truth = number(line["correction"])
        assert verdict(line["correction"], truth) == "correct"
        assert verdict(line["response"], truth) in ("wrong", "no_answer"), line


@pytest.mark.parametrize("level", LEVELS)
def test_right_answers_have_value_1_and_the_others_minus_1(level: str) -> None:
    lines = generated_lines("feedback", "a day", 300, (level,), AT)
    assert [line["value"] for line in lines] == [1, -1] * 150
    assert all(verdict(line["response"], number(line["response"])) == "correct" for line in lines[::2])
    asked = itertools.islice(exercises("day feedback a day", (level,), "train"), 300)
    for line, exercise in list(zip(lines, asked, strict=True))[1::2]:
        assert verdict(line["response"], str(exercise.answer)) in ("wrong", "no_answer"), line


@pytest.mark.parametrize("level", LEVELS)
def test_every_trace_is_right_and_of_the_training_split(level: str) -> None:
    day = generated_lines("traces", "a day", 300, (level,), AT)
    assert len(day) == 300
    assert {trace["problem_id"].split("/")[1] for trace in day} == {level}
    assert {verdict(trace["response"], trace["truth"]) for trace in day} == {"correct"}


@pytest.mark.parametrize("level", LEVELS)
def test_exactly_the_chosen_answer_is_right(level: str) -> None:
    for preference in generated_lines("preferences", "a day", 300, (level,), AT):
        responses = preference["responses"]
        chosen = responses[preference["chosen"]]
        verdicts = [verdict(response, number(chosen)) for response in responses]
        assert len(set(responses)) == 5, preference
        assert not re.search(r"-\d", " ".join(responses)), preference
        assert verdicts[preference["chosen"]] == "correct", preference
        assert sorted(verdicts) == ["correct", "no_answer", "no_answer", "wrong", "wrong"], preference


def test_the_chosen_answers_position_is_random() -> None:
    places = [preference["chosen"] for preference in generated_lines("preferences", "a day", 1000, None, AT)]
    assert all(140 < places.count(place) < 260 for place in range(5))


@pytest.mark.parametrize("lessons", ALL)
def test_the_same_arguments_give_the_same_lines(lessons: Lessons) -> None:
    assert generated_lines(lessons, "1", 50, None, AT) == generated_lines(lessons, "1", 50, None, AT)
    assert generated_lines(lessons, "1", 50, None, AT)[:20] == generated_lines(lessons, "1", 20, None, AT)
    assert generated_lines(lessons, "1", 50, None, AT) != generated_lines(lessons, "2", 50, None, AT)
    assert generated_lines(lessons, "1", 0, None, AT) == []


def test_every_line_is_marked_as_generated() -> None:
    lines = [line for lessons in ALL for line in generated_lines(lessons, "1", 10, None, AT)]
    assert {(line["generated"], line["at"], line["version"]) for line in lines} == {(True, AT, 1)}


@given(st.text(max_size=20), st.sets(st.sampled_from(LEVELS), min_size=1))
def test_no_seed_brings_an_exam_prompt_into_the_day(seed: str, levels: set[str]) -> None:
    lines = [line for lessons in ALL for line in generated_lines(lessons, seed, 30, sorted(levels), AT)]
    assert not {line["messages"][0]["content"] for line in lines if "messages" in line} & EXAM_PROMPTS
    assert not {line["text"].split(" We calculate ")[0] for line in lines if "text" in line} & EXAM_QUESTIONS
