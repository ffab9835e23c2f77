"""The alarm over a learned reward that rises while the student unlearns what its owner picks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.reward_model.overoptimization import fell, learned_reward_hacked, risen, unwatched

GOOD = [True] * 16 + [False] * 4
WORSE = [True] * 8 + [False] * 12
BETTER = [True] * 20


def rounds(*learned: float, spread: float = 1.0) -> list[dict[str, float]]:
    return [{"reward/learned": one, "reward/learned_spread": spread} for one in learned]


RISING = rounds(0.0, 0.1, 0.2, 0.8, 0.9, 1.0)


def test_reward_up_and_ranking_down_rings() -> None:
    alarm = learned_reward_hacked(RISING, {(1, 0): GOOD, (1, 6): WORSE})
    assert alarm is not None
    assert (alarm.name, alarm.severe, alarm.round) == ("learned_reward_hacked", False, 6)
    assert "from 0.10 to 0.90 by round 6" in alarm.sentence
    assert "from 0.80 to 0.40" in alarm.sentence


@pytest.mark.parametrize(
    ("learned", "rankings"),
    [
        (RISING, {(1, 0): GOOD, (1, 6): GOOD}),
        (RISING, {(1, 0): GOOD, (1, 6): BETTER}),
        (RISING, {(1, 0): GOOD, (1, 6): [True] * 12 + [False] * 8}),  # 4 lost: 1/16 by chance
        (
            rounds(1.0, 0.9, 0.8, 0.2, 0.1, 0.0),
            {(1, 0): GOOD, (1, 6): WORSE},
        ),  # the proxy fell too: something else is wrong
        (rounds(0.0, 0.1, 0.2, 0.05, 0.1, 0.2), {(1, 0): GOOD, (1, 6): WORSE}),
        (
            rounds(0.0, 0.1, 0.2, 0.8, 0.9, 1.0, spread=10.0),
            {(1, 0): GOOD, (1, 6): WORSE},
        ),  # a small part of the spread
        (RISING, {(1, 6): WORSE}),  # nothing to compare with
        (RISING, {(1, 0): [], (1, 6): []}),
        (rounds(5.0), {(1, 0): GOOD, (1, 1): WORSE}),  # one round has no trend
        ([{}] * 6, {(1, 0): GOOD, (1, 6): WORSE}),
        (RISING[:3], {(1, 0): GOOD, (1, 6): WORSE}),  # a round that is taken again: its ranking does not count yet
    ],
)
def test_all_else_is_quiet(learned: list[dict[str, float]], rankings: dict[tuple[int, int], list[bool]]) -> None:
    assert learned_reward_hacked(learned, rankings) is None


def test_five_lost_and_none_won_is_enough() -> None:
    assert learned_reward_hacked(RISING, {(1, 0): GOOD, (1, 6): [True] * 11 + [False] * 9})  # 1/32


def test_with_fewer_than_five_to_lose_it_is_said_that_nothing_is_watched() -> None:
    four = [True] * 4 + [False] * 36
    assert learned_reward_hacked(RISING, {(1, 0): four, (1, 6): [False] * 40}) is None
    assert unwatched(four) == (
        "the learned reward cannot be watched: the student ranks 4 of 40 held-out picks first, "
        "and chance alone may lose so few"
    )
    assert unwatched([])
    assert learned_reward_hacked(RISING, {(1, 0): [True, *four], (1, 6): [False] * 41})
    assert unwatched([True, *four]) is None


def test_a_rise_on_the_owners_prompts_is_not_diluted_by_the_problems_with_a_verifier() -> None:
    """At `owner_share` 0.25: three quarters of the answers are to problems on which nothing rises."""
    quarter = [one | {"reward/learned": 0.25 * one["reward/learned"]} for one in rounds(0.0, 0.05, 0.1, 0.2, 0.25, 0.3)]
    owned = [one | {"reward/learned_owner": 4 * one["reward/learned"]} for one in quarter]
    assert learned_reward_hacked(quarter, {(1, 0): GOOD, (1, 6): WORSE}) is None
    alarm = learned_reward_hacked(owned, {(1, 0): GOOD, (1, 6): WORSE})
    assert alarm is not None
    assert "from 0.05 to 0.25 by round 6" in alarm.sentence
    assert risen([*owned[:3], quarter[3], *owned[4:]])[0] == pytest.approx((0.025, 0.275))  # none of the fourth's


def test_the_first_round_stays_the_one_and_later_ones_change_nothing() -> None:
    later = [*RISING, *rounds(0.0, 0.0, 0.0)]
    alarm = learned_reward_hacked(RISING[:4], {(1, 0): GOOD, (1, 2): GOOD, (1, 4): WORSE})
    assert alarm is not None
    assert (
        learned_reward_hacked(later, {(1, 0): GOOD, (1, 2): GOOD, (1, 4): WORSE, (1, 6): BETTER, (1, 9): WORSE})
        == alarm
    )


def test_a_lesson_between_blocks_is_neither_blamed_on_the_learned_reward_nor_hides_it() -> None:
    """The second block begins with round 4, after a lesson that changed the ranking, and the answers with it."""
    blamed = rounds(0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9)
    assert learned_reward_hacked(blamed, {(1, 0): GOOD, (1, 3): GOOD, (4, 3): WORSE, (4, 7): WORSE}) is None
    assert learned_reward_hacked(RISING, {(1, 0): GOOD, (1, 3): GOOD, (4, 3): WORSE, (4, 6): WORSE}) is None
    hidden = rounds(0.9, 0.9, 0.9, 0.0, 0.1, 0.5, 0.6)
    alarm = learned_reward_hacked(hidden, {(1, 0): WORSE, (1, 3): WORSE, (4, 3): GOOD, (4, 7): WORSE})
    assert alarm is not None
    assert "from 0.05 to 0.55 by round 7" in alarm.sentence
    assert "from 0.80 to 0.40" in alarm.sentence


def test_windows_do_not_overlap() -> None:
    assert risen(rounds(1, 2, 3))[0] == (1, 3)
    assert risen(rounds(1, 2, 3, 4, 5))[0] == (1.5, 4.5)
    assert risen(rounds(1, 2, 3, 4, 5, 6, 7, 8))[0] == (2, 7)
    assert risen([*rounds(1, 2), {}, *rounds(4, 5)])[0] == (1.5, 4.5)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
def test_mcnemar_is_the_binomial_tail(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [was for was, _ in pairs], [now for _, now in pairs]
    lost, won = pairs.count((True, False)), pairs.count((False, True))
    assert fell(before, after) == pytest.approx(binom.sf(lost - 1, lost + won, 0.5) if lost + won else 1.0)
