"""Every exercise is true, says what it means, fits its level and stays on its side of the exam."""

import itertools
import operator
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.sections.benchmark import LEVELS
from rewards.data.arithmetic_exercises import KINDS, Exercise, exercises

SAMPLE = {
    (level, split): list(itertools.islice(exercises("a test", (level,), split), 600))
    for level in LEVELS
    for split in ("train", "test")
}
EVERY = [exercise for sample in SAMPLE.values() for exercise in sample]
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}

# The wording, read independently of the code that wrote it.
SENTENCES = {
    r"\w+ has (\d+) boxes with (\d+) \w+ each\.": lambda value, boxes, each: boxes * each,
    r"\w+ has (\d+) \w+\.": lambda value, number: number,
    r"\w+ (?:buys|finds|gets) (\d+) more(?: \w+)?\.": lambda value, number: value + number,
    r"\w+ (?:gives away|loses|sells) (\d+)(?: \w+)?\.": lambda value, number: value - number,
    r"Then the number of \w+ doubles\.": lambda value: value * 2,
    r"Then \w+ sells (\d+) percent of all the \w+\.": lambda value, percent: value - value * percent / 100,
    r"Then \w+ splits all the \w+ equally into (\d+) bags and keeps only one of the bags\.": lambda value, n: value / n,
    r"\w+ shares them equally among (\d+) friends\.": lambda value, friends: value / friends,
    r"\w+ has (\d+) more than \w+\.": lambda value, more: value + (value + more),
    r"How many \w+ (?:does \w+ have(?: now)?|does each of them get|do they have together)\?": lambda value: value,
}


def understood(question: str) -> Fraction:
    """The answer as a reader of the question finds it, sentence by sentence."""
    if question.startswith("What is "):
        assert re.fullmatch(r"What is [0-9 +*-]+\?", question)
        return Fraction(eval(question.removeprefix("What is ").removesuffix("?")))  # digits and operators only
    value = Fraction(0)
    for sentence in re.findall(r"[^.?]+[.?]", question):
        found = [(re.fullmatch(pattern, sentence.strip()), happens) for pattern, happens in SENTENCES.items()]
        [(match, happens)] = [(match, happens) for match, happens in found if match]  # one meaning, no more
        value = happens(value, *(Fraction(number) for number in match.groups()))
    return value


def calculated(left: str) -> Fraction:
    """The left side of a step, operator after operator."""
    first, *rest = left.split()
    value = Fraction(first)
    for sign, number in zip(rest[::2], rest[1::2], strict=True):
        value = OPERATORS[sign](value, Fraction(number))
    return value


def numbers(exercise: Exercise) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", exercise.question)]


def signature(exercise: Exercise) -> tuple[str, tuple[int, ...]]:
    """What is asked, without names and things, and without the order of a first sum's or product's terms."""
    asked = numbers(exercise)
    if exercise.steps[0].split()[1] in "+*" and exercise.kind != "compare":  # who has more is not who has fewer
        asked[:2] = sorted(asked[:2])
    return exercise.kind, tuple(asked)


def test_the_sample_holds_every_kind_of_every_level() -> None:
    for level in LEVELS:
        kinds = {"-".join(chain) for chain in KINDS[level]}
        assert {exercise.kind for exercise in SAMPLE[level, "train"]} == kinds
        assert {exercise.kind for exercise in SAMPLE[level, "test"]} == kinds


def test_the_answer_is_what_a_reader_of_the_question_finds() -> None:
    for exercise in EVERY:
        assert understood(exercise.question) == exercise.answer, exercise


def test_every_step_is_true_and_starts_from_the_one_before() -> None:
    for exercise in EVERY:
        before = None
        for step in exercise.steps:
            left, right = step.split(" = ")
            assert calculated(left) == Fraction(right), exercise
            assert before is None or before in left.split(), exercise
            before = right
        assert before == str(exercise.answer), exercise


def test_no_number_is_negative() -> None:
    for exercise in EVERY:
        assert not re.search(r"-\d", " ".join([exercise.question, *exercise.steps])), exercise
        assert exercise.answer >= 0


@pytest.mark.parametrize(
    ("level", "steps", "largest"), [("1", 1, 20), ("2", 2, 10), ("3", 3, 50), ("4", 4, 100), ("5", 4, 400)]
)
def test_the_steps_and_numbers_of_a_level(level: str, steps: int, largest: int) -> None:
    sample = SAMPLE[level, "train"] + SAMPLE[level, "test"]
    assert {len(exercise.steps) for exercise in sample} == {steps}
    assert max(max(numbers(exercise)) for exercise in sample) <= largest
    assert max(max(numbers(exercise)) for exercise in sample) > largest * 0.9


def test_level_5_has_large_numbers_and_a_division_or_percent_everywhere() -> None:
    for exercise in SAMPLE["5", "train"] + SAMPLE["5", "test"]:
        assert any(" / " in step for step in exercise.steps), exercise
        assert any(int(step.split(" = ")[1]) > 100 for step in exercise.steps), exercise


def test_nothing_is_never_doubled_sold_in_part_or_split() -> None:
    for exercise in EVERY:
        assert not any(step.startswith(("0 *", "0 /")) for step in exercise.steps), exercise


@pytest.mark.parametrize("level", LEVELS)
def test_training_and_exam_ask_different_things_whatever_the_wording(level: str) -> None:
    training = {signature(exercise) for exercise in SAMPLE[level, "train"]}
    exam = {signature(exercise) for exercise in SAMPLE[level, "test"]}
    assert not training & exam


def test_the_order_of_a_first_sum_or_product_does_not_change_the_expression() -> None:
    def expression(*steps: str) -> str:
        return Exercise("1", "plus", "", steps, 0).expression

    assert expression("7 + 5 = 12", "12 - 3 = 9") == expression("5 + 7 = 12", "12 - 3 = 9") == "5 + 7; 12 - 3"
    assert expression("10 * 9 = 90") == expression("9 * 10 = 90") == "9 * 10"  # 9 < 10 as numbers, not as text
    assert expression("7 - 5 = 2") == "7 - 5"
    assert expression("8 / 2 = 4") == "8 / 2"


@given(st.text(max_size=20), st.sets(st.sampled_from(LEVELS), min_size=1))
def test_the_same_seed_gives_the_same_exercises_of_the_levels_asked_for(seed: str, levels: set[str]) -> None:
    chosen = tuple(sorted(levels))
    first = list(itertools.islice(exercises(seed, chosen, "train"), 40))
    assert first == list(itertools.islice(exercises(seed, chosen, "train"), 40))
    assert {exercise.level for exercise in first} <= levels
    assert {exercise.split for exercise in first} == {"train"}
