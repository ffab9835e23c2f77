"""Alarms are raised where a night goes wrong, and only there: figures on both sides of every threshold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tasks.monitoring.alarms import Alarm
from tasks.monitoring.round_alarms import round_alarms

HINTED = {"completion_length": math.nan}  # a round whose prompts all have hints

Figures = Mapping[str, float]

GOOD: dict[str, float] = {
    "groups": 40.0,
    "useful_groups": 20.0,
    "skipped": 0.0,
    "null_rewards": 0,
    "verdicts/correct": 50,
    "verdicts/wrong": 50,
    "reward": 0.5,
    "completion_length": 90.0,
    "truncated_share": 0.1,
    "entropy": 0.3,
    "mismatch": 0.02,
    "sampler_k3": 0.001,
    "masked_share": 0.0,
    "non_finite_steps": 0.0,
    "seconds_round": 30.0,
}


def night(*changes: Figures) -> list[Figures]:
    """Rounds, each good but for its changes."""
    return [GOOD | change for change in changes]


def raised(rounds: Sequence[Figures], quizzes: Any = None) -> list[tuple[str, bool, int | None]]:
    return [(alarm.name, alarm.severe, alarm.round) for alarm in round_alarms(rounds, quizzes)]


# The first rounds of a starter night, as they were.
STARTER = [
    {"reward": 0.320, "entropy": 0.135, "completion_length": 15.2, "useful_groups": 20.0, "seconds_round": 69.5},
    {"reward": 0.333, "entropy": 0.110, "completion_length": 15.5, "useful_groups": 23.3, "seconds_round": 21.6},
    {"reward": 0.510, "entropy": 0.115, "completion_length": 16.0, "useful_groups": 30.0, "seconds_round": 24.8},
    {"reward": 0.471, "entropy": 0.108, "completion_length": 18.8, "useful_groups": 36.7, "seconds_round": 29.5},
    {"reward": 0.443, "entropy": 0.097, "completion_length": 17.3, "useful_groups": 35.0, "seconds_round": 30.9},
    {"reward": 0.586, "entropy": 0.108, "completion_length": 17.4, "useful_groups": 31.7, "seconds_round": 28.9},
]


def test_a_good_night_is_silent() -> None:
    assert round_alarms([]) == []
    assert round_alarms([GOOD] * 10, {5: (60, 100), 10: (62, 100)}) == []
    healthy = night(*({"truncated_share": 0.0} | figures for figures in STARTER))
    for number in range(1, len(healthy) + 1):
        assert round_alarms(healthy[:number], {5: (60, 100)}) == []


@pytest.mark.parametrize(
    ("silent", "loud", "alarm"),
    [
        ([{"useful_groups": 4.0}], [{"useful_groups": 3.0}], ("no_signal", False, 1)),
        ([{"skipped": 0.0}], [{}, {"skipped": 1.0}], ("skipped_updates", False, 2)),
        ([{"non_finite_steps": 0.0}], [{"non_finite_steps": 1.0}, {}], ("non_finite_steps", False, 1)),
        ([{"null_rewards": 0}], [{}, {"null_rewards": 1}], ("graders_failing", False, 2)),
        ([], [{}, {"null_rewards": 50}], ("graders_failing", False, 2)),
        ([], [{}, {"null_rewards": 51}], ("graders_failing", True, 2)),
        ([], [{}, {"null_rewards": 80, "verdicts/owner/grader_failed": 30}], ("graders_failing", False, 2)),
        ([], [{}, {"null_rewards": 81, "verdicts/owner/grader_failed": 30}], ("graders_failing", True, 2)),
        ([{"masked_share": 0.01}], [{"masked_share": 0.011}], ("mismatch", False, 1)),
        ([{"sampler_k3": 0.05}], [{}, {"sampler_k3": 0.051}, {}], ("mismatch", False, 2)),
        ([], [{}, {"masked_share": 0.25}], ("mismatch", False, 2)),
        ([], [{}, {"masked_share": 0.26}], ("mismatch", True, 2)),
        ([{}, {"completion_length": 30.0}], [{}, {"completion_length": 29.9}], ("length_collapse", False, 2)),
        ([], [{}, {"completion_length": 9.0}], ("length_collapse", False, 2)),
        ([HINTED, {}], [HINTED, {}, {"completion_length": 9.0}], ("length_collapse", False, 3)),
        ([], [{}, {"completion_length": 8.9}], ("length_collapse", True, 2)),
        ([{}, {"completion_length": 270.0}], [{}, {"completion_length": 271.0}], ("length_explosion", False, 2)),
        ([{}, {"truncated_share": 0.5}], [{}, {"truncated_share": 0.51}], ("length_explosion", True, 2)),
        (
            [{"truncated_share": 0.6}, {"truncated_share": 0.89}],  # the limit was tight from the start
            [{"truncated_share": 0.6}, {"truncated_share": 0.91}],
            ("length_explosion", True, 2),
        ),
        ([{}, {"entropy": 0.01}], [{}, {"entropy": 0.0099}], ("entropy_collapse", True, 2)),
        (
            [{"entropy": 0.05}, {"entropy": 0.0051}],  # it was sure of itself from the start
            [{"entropy": 0.05}, {"entropy": 0.0049}],
            ("entropy_collapse", True, 2),
        ),
        (
            # it solves nearly all; what the learned reward judged is neither right nor wrong
            [{}, {"entropy": 0.001, "verdicts/correct": 91, "verdicts/wrong": 9, "verdicts/judged": 100}],
            [{}, {"entropy": 0.001, "verdicts/correct": 90, "verdicts/wrong": 10, "verdicts/judged": 100}],
            ("entropy_collapse", True, 2),
        ),
        (
            [{}, {}, {}, {"seconds_round": 90.0}],
            [{}, {}, {"seconds_round": 40.0}, {"seconds_round": 90.1}],
            ("slow_round", False, 4),
        ),
    ],
)
def test_both_sides_of_a_threshold(silent: Any, loud: Any, alarm: tuple[str, bool, int]) -> None:
    assert raised(night(*silent)) == []
    assert raised(night(*loud)) == [alarm]


def test_the_graders_that_failed_are_named() -> None:
    rounds = night(
        {"null_rewards": 2, "verdicts/grader_failed": 2, "verdicts/mbpp/grader_failed": 2, "verdicts/mbpp/wrong": 9},
        {"null_rewards": 2, "verdicts/mbpp/grader_failed": 1, "verdicts/math/grader_failed": 1},
        {"verdicts/gsm8k/grader_failed": 0},
    )
    said = "The grader failed on 4 completions (mbpp 3, math 1) in rounds 1, 2; they were left out."
    assert round_alarms(rounds) == [Alarm("graders_failing", False, said, 2)]


def test_the_share_with_signal_is_that_of_all_groups_of_the_last_three_rounds() -> None:
    """A round with refills has more groups: 14 of 110 have a signal, though the two rounds' shares average 0.07."""
    small, large = {"groups": 10.0, "useful_groups": 0.0}, {"groups": 100.0, "useful_groups": 14.0}
    assert raised(night(small, large)) == []
    assert raised(night({}, *[{"useful_groups": 3.0}] * 2)) == []
    assert raised(night({}, *[{"useful_groups": 3.0}] * 3)) == [("no_signal", False, 4)]
    assert raised(night(*[{"useful_groups": 3.0}] * 3, {}, {}, {})) == []


QUIET, LOUD = {5: (65, 100), 10: (45, 100)}, {5: (65, 100), 10: (44, 100)}  # three errors are 0.205


@pytest.mark.parametrize(
    ("late", "quizzes", "loud"),
    [
        (0.6, LOUD, True),
        (0.6, QUIET, False),
        (0.51, LOUD, False),  # the reward did not rise
        (0.4, LOUD, False),  # it fell along
        (0.6, {5: (44, 100), 10: (65, 100)}, False),  # the quiz rose
        (0.6, {3: (20, 100)} | LOUD, True),  # the best before counts
        (0.6, {5: (1, 1), 10: (0, 1)}, False),  # one question tells nothing
        (0.6, {5: (10, 10), 10: (1, 10)}, True),
        (0.6, {5: (0, 0), 10: (0, 100)}, False),  # nothing was graded
        (0.6, {5: (65, 100), 10: (0, 0)}, False),
        (0.6, {10: (1, 100)}, False),
    ],
)
def test_a_reward_that_rises_while_the_quiz_falls(late: float, quizzes: Any, loud: bool) -> None:
    rounds = night(*[{}] * 5, *[{"reward": late}] * 5)
    assert raised(rounds, quizzes) == [("reward_up_quiz_down", True, 10)] * loud


def test_a_round_whose_update_was_skipped_has_no_figures_of_one() -> None:
    skipped = {"groups": 50.0, "useful_groups": 1.0, "skipped": 1.0, "null_rewards": 0}
    assert raised([skipped]) == [("no_signal", False, 1), ("skipped_updates", False, 1)]
    assert raised([GOOD, skipped, GOOD]) == [("skipped_updates", False, 2)]


def test_a_round_without_a_reward_does_not_end_the_night() -> None:
    """All graders failed: the mean reward is no number, and metrics.json leaves it out."""
    failed = {name: value for name, value in GOOD.items() if name != "reward"} | {"null_rewards": 100}
    assert raised([failed] * 10, LOUD) == [("graders_failing", True, 10)]
