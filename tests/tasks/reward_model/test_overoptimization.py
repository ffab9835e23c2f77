"""The alarm for a learned reward that rises while the student unlearns what its owner picks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.reward_model.overoptimization import fell, learned_reward_hacked, unwatched


def ranking(right: int, of: int = 20) -> list[bool]:
    return [True] * right + [False] * (of - right)


def rounds(*learned: float, spread: float = 1.0) -> list[dict[str, float]]:
    return [{"reward/learned": reward, "reward/learned_spread": spread} for reward in learned]


GOOD, WORSE, BETTER = ranking(16), ranking(8), ranking(20)
RISING = rounds(0.0, 0.1, 0.2, 0.8, 0.9, 1.0)


def test_a_rising_reward_and_a_falling_ranking_raise_the_alarm() -> None:
    alarm = learned_reward_hacked(RISING, {(1, 0): GOOD, (1, 6): WORSE})
    assert alarm is not None
    assert (alarm.name, alarm.severe, alarm.round) == ("learned_reward_hacked", False, 6)
    assert "from 0.10 to 0.90 by round 6" in alarm.sentence
    assert "from 0.80 to 0.40" in alarm.sentence


def test_under_a_judge_the_falling_ranking_alone_raises_it() -> None:
    """A judge's scores only compare the answers of a group: their mean is always 0.5."""
    flat = rounds(0.5, 0.5, 0.5, 0.5)
    assert learned_reward_hacked(flat, {(1, 0): GOOD, (1, 4): WORSE}) is None
    alarm = learned_reward_hacked(flat, {(1, 0): GOOD, (1, 4): WORSE}, relative=True)
    assert alarm is not None
    assert (alarm.name, alarm.round) == ("learned_reward_hacked", 4)
    assert "from 0.80 to 0.40" in alarm.sentence
    assert learned_reward_hacked(flat, {(1, 0): GOOD, (1, 4): GOOD}, relative=True) is None


@pytest.mark.parametrize(
    ("learned", "rankings"),
    [
        (RISING, {(1, 0): GOOD, (1, 6): GOOD}),
        (RISING, {(1, 0): GOOD, (1, 6): BETTER}),
        (RISING, {(1, 0): GOOD, (1, 6): ranking(12)}),  # 4 lost: 1/16 by chance
        (rounds(1.0, 0.9, 0.8, 0.2, 0.1, 0.0), {(1, 0): GOOD, (1, 6): WORSE}),  # another cause: the reward fell too
        (rounds(0.0, 0.1, 0.2, 0.05, 0.1, 0.2), {(1, 0): GOOD, (1, 6): WORSE}),
        (rounds(0.0, 0.1, 0.2, 0.8, 0.9, 1.0, spread=10.0), {(1, 0): GOOD, (1, 6): WORSE}),  # small beside the spread
        (RISING, {(1, 6): WORSE}),  # nothing to compare with
        (RISING, {(1, 0): [], (1, 6): []}),
        (rounds(5.0), {(1, 0): GOOD, (1, 1): WORSE}),  # one round has no trend
        ([{}] * 6, {(1, 0): GOOD, (1, 6): WORSE}),
        (RISING[:3], {(1, 0): GOOD, (1, 6): WORSE}),  # a round that is repeated: its ranking does not count yet
    ],
)
def test_else_there_is_no_alarm(learned: list[dict[str, float]], rankings: dict[tuple[int, int], list[bool]]) -> None:
    assert learned_reward_hacked(learned, rankings) is None


def test_with_fewer_than_five_to_lose_the_reward_cannot_be_watched() -> None:
    assert learned_reward_hacked(RISING, {(1, 0): ranking(4, 40), (1, 6): ranking(0, 40)}) is None
    assert unwatched(ranking(4, 40)) == (
        "the learned reward cannot be watched: the student ranks 4 of 40 held-out picks first, "
        "and chance alone may lose so few"
    )
    assert unwatched([])
    assert learned_reward_hacked(RISING, {(1, 0): ranking(5, 40), (1, 6): ranking(0, 40)})  # 1/32
    assert unwatched(ranking(5, 40)) is None


def test_each_further_ranking_of_a_block_needs_more_evidence() -> None:
    """Else eight rankings without any trend would raise the alarm twice as often as one."""
    start, lost = ranking(5, 40), ranking(0, 40)
    assert learned_reward_hacked(RISING, {(1, 0): start, (1, 3): start, (1, 6): lost}) is None  # 1/32 is above 0.05 / 2
    assert learned_reward_hacked(RISING, {(1, 0): GOOD, (1, 3): GOOD, (1, 6): WORSE})  # 1/256


def test_the_first_alarm_stays_whatever_follows() -> None:
    rankings = {(1, 0): GOOD, (1, 2): GOOD, (1, 4): WORSE}
    alarm = learned_reward_hacked(RISING[:4], rankings)
    later = [*RISING, *rounds(0.0, 0.0, 0.0)]
    assert learned_reward_hacked(later, rankings | {(1, 6): BETTER, (1, 9): WORSE}) == alarm is not None


def test_each_block_is_compared_with_its_own_start() -> None:
    """The second block begins with round 4, after a lesson that changed ranking and rewards."""
    lesson_raised = rounds(0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9)
    assert learned_reward_hacked(lesson_raised, {(1, 0): GOOD, (1, 3): GOOD, (4, 3): WORSE, (4, 7): WORSE}) is None
    assert learned_reward_hacked(RISING, {(1, 0): GOOD, (1, 3): GOOD, (4, 3): WORSE, (4, 6): WORSE}) is None
    lesson_lowered = rounds(0.9, 0.9, 0.9, 0.0, 0.1, 0.5, 0.6)
    alarm = learned_reward_hacked(lesson_lowered, {(1, 0): WORSE, (1, 3): WORSE, (4, 3): GOOD, (4, 7): WORSE})
    assert alarm is not None
    assert "from 0.05 to 0.55 by round 7" in alarm.sentence


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
def test_the_p_value_is_the_binomial_tail(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [was for was, _ in pairs], [now for _, now in pairs]
    lost, won = pairs.count((True, False)), pairs.count((False, True))
    assert fell(before, after) == pytest.approx(binom.sf(lost - 1, lost + won, 0.5) if lost + won else 1.0)
