"""The picks of a known taste: it is what it says, and nothing else gives it away."""

import statistics

import pytest

from benchmarks.inputs.tastes import ANSWERS, Choice, picks


def shortest(choice: Choice) -> int:
    return min(range(ANSWERS), key=lambda place: len(choice.responses[place]))


def number(response: str) -> int:
    return int(response.rpartition("####")[2])


def right(choice: Choice) -> int:
    """The one whose last step is calculated right: `steps` come from our own generator."""

    def holds(response: str) -> bool:
        left, _, result = response.splitlines()[-2].partition(" = ")
        return eval(left) == int(result) == number(response)

    (only,) = [place for place, response in enumerate(choice.responses) if holds(response)]
    return only


def sentences(response: str) -> int:
    """The sentences of the remarks before the calculation."""
    return response.partition("\n")[0].count(".")


def test_a_taste_picks_what_it_is_named_after() -> None:
    assert all(choice.chosen == shortest(choice) for choice in picks("short", 200, "1"))
    assert all(choice.chosen == right(choice) for choice in picks("correct", 200, "1"))
    for choice in picks("one sentence", 200, "1"):
        assert [place for place in range(ANSWERS) if sentences(choice.responses[place]) == 1] == [choice.chosen]


def test_neither_length_nor_position_tells_the_correct_answer() -> None:
    for taste in ("correct", "one sentence"):
        shares = [choice.chosen == shortest(choice) for choice in picks(taste, 1000, "1")]
        assert statistics.fmean(shares) == pytest.approx(0.2, abs=0.04)
    for taste in ("short", "one sentence", "correct", "none"):
        places = [choice.chosen for choice in picks(taste, 1000, "1")]
        assert all(places.count(place) / 1000 == pytest.approx(0.2, abs=0.04) for place in range(ANSWERS))
