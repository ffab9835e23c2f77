"""Alarms ring where a night went wrong, and only there."""

from collections.abc import Mapping

import pytest

from tasks.alarms import exam_alarms, forgotten_kinds, round_alarms

GOOD = {
    "groups": 40.0,
    "useful_groups": 20.0,
    "skipped": 0.0,
    "null_rewards": 0,
    "masked_share": 0.0,
    "non_finite_steps": 0.0,
}


def test_a_good_night_is_silent() -> None:
    assert round_alarms([]) == []
    assert round_alarms([GOOD] * 10) == []
    assert round_alarms([GOOD | {"useful_groups": 4.0, "masked_share": 0.01}]) == []  # the limits themselves


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        (
            [GOOD | {"useful_groups": 0.0}, GOOD | {"useful_groups": 4.0}],
            "Hardly any group had a signal (5%): the problems are too hard or too easy to learn from.",
        ),
        ([GOOD, GOOD | {"skipped": 1.0}], "1 of 2 updates were skipped for want of useful groups."),
        (
            [GOOD | {"null_rewards": 2}, GOOD | {"null_rewards": 1}],
            "The grader failed on 3 completions; they were left out.",
        ),
        (
            [GOOD | {"masked_share": 0.02}, GOOD, GOOD | {"masked_share": 0.5}],
            "Sampler and trainer disagreed on more than 1 % of the completions in rounds 1, 3.",
        ),
        (
            [GOOD, GOOD | {"non_finite_steps": 1.0}],
            "Gradients were not finite in rounds 2; those steps were not taken.",
        ),
    ],
)
def test_one_alarm_for_one_fault(rounds: list[Mapping[str, float]], said: str) -> None:
    assert round_alarms(rounds) == [said]


def test_the_share_with_signal_is_that_of_all_groups_that_were_sampled() -> None:
    """A round with refills has more groups: 14 of 110 have a signal, though the two rounds' shares average 0.07."""
    rounds = [GOOD | {"groups": 10.0, "useful_groups": 0.0}, GOOD | {"groups": 100.0, "useful_groups": 14.0}]
    assert round_alarms(rounds) == []
    assert len(round_alarms([GOOD | {"groups": 110.0, "useful_groups": 8.0}])) == 1


def test_the_graders_that_failed_are_named() -> None:
    rounds = [
        GOOD
        | {"null_rewards": 2, "verdicts/grader_failed": 2, "verdicts/mbpp/grader_failed": 2, "verdicts/mbpp/wrong": 9},
        GOOD | {"null_rewards": 2, "verdicts/mbpp/grader_failed": 1, "verdicts/math/grader_failed": 1},
        GOOD | {"verdicts/gsm8k/grader_failed": 0},
    ]
    assert round_alarms(rounds) == ["The grader failed on 4 completions (mbpp 3, math 1); they were left out."]


def test_a_grader_that_failed_in_the_exam() -> None:
    assert exam_alarms({}) == exam_alarms({"gsm8k": (0, 300)}) == []
    assert exam_alarms({"gsm8k": (0, 300), "mbpp": (3, 150)}) == [
        "The grader failed on 3 of the 150 exam answers of mbpp; they were left out."
    ]


def test_a_round_whose_update_was_skipped_has_no_figures_of_one() -> None:
    skipped = {"groups": 50.0, "useful_groups": 1.0, "skipped": 1.0, "null_rewards": 0}
    assert len(round_alarms([skipped])) == 2


def test_a_kind_that_was_solved_and_then_no_more() -> None:
    history = [{"2/compare": (20.0, 5.0)}, {"2/compare": (20.0, 2.0)}, {"2/compare": (20.0, 0.2)}]
    assert forgotten_kinds(history) == [
        "2/compare was solved in 25% of the tries during the night and in 1% at its end."
    ]


def test_a_kind_that_was_never_solved() -> None:
    assert forgotten_kinds([{"2/compare": (9.0, 0.0)}, {"2/compare": (20.0, 0.3)}]) == [
        "2/compare was practised to the end of the night and hardly ever solved: worked solutions of it would help."
    ]


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{"a": (20.0, 5.0)}, {"a": (20.0, 1.0)}],  # still solved sometimes
        [{"a": (20.0, 2.0)}, {"a": (20.0, 0.0)}],  # never could
        [{"a": (7.0, 7.0)}, {"a": (20.0, 0.0)}],  # seven tries may be luck
        [{"a": (20.0, 10.0)}, {"a": (7.0, 0.0)}],
        [{"a": (20.0, 0.0)}, {"a": (20.0, 10.0)}],  # learned, not forgotten
    ],
)
def test_no_alarm_without_reason(history: list[dict[str, tuple[float, float]]]) -> None:
    assert forgotten_kinds(history) == []
