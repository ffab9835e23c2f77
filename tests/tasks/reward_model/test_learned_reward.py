"""The learned reward: the reward on the owner's prompts."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.sections.lessons import LearnedRewardConfig
from rewards.verifier import Attempt, Problem, Score
from tasks.reward_model.learned_reward import OWNER, owner_scores, standardised, with_learned

PROMPT = Problem("owner/1", OWNER, "Tell me of the sea.", "")
numbers, nan = st.floats(-1e6, 1e6), st.just(math.nan)
rewards = st.lists(numbers | nan, min_size=1, max_size=12)


def attempt(text: str = "Blue.", group: int = 0, finish_reason: str = "stop", tokens: int = 10) -> Attempt:
    return Attempt(PROMPT, text, group, finish_reason, tokens)


def verified(*rights: bool) -> list[Score]:
    return [Score(float(right), "correct" if right else "wrong", parts={"correct": float(right)}) for right in rights]


def test_standardised_by_hand() -> None:
    assert standardised([1.0, 3.0]) == [-1.0, 1.0]
    assert standardised([0.0, 0.0, 3.0]) == pytest.approx([-(2**-0.5), -(2**-0.5), 2**0.5])
    assert standardised([0.25] * 4) == [0.0] * 4
    assert standardised([0.1, 0.1 + 1e-7]) == [0.0, 0.0]  # a rounding difference is no preference
    assert standardised([5.0]) == [0.0]
    assert standardised([]) == []
    assert standardised([0.0] * 15 + [1.0])[-1] == 3.0  # 3.87, clipped
    # What is not finite does not count.
    assert standardised([1.0, math.nan, 3.0, math.inf]) == pytest.approx([-1.0, math.nan, 1.0, math.nan], nan_ok=True)
    assert all(map(math.isnan, standardised([math.nan, math.nan])))


@given(rewards, st.floats(0.5, 4), st.floats(-100, 100))
def test_standardised_has_mean_zero_and_the_order_at_any_scale(group: list[float], scale: float, shift: float) -> None:
    found = standardised(group)
    known = [(reward, z) for reward, z in zip(group, found, strict=True) if not math.isnan(reward)]
    assert all(math.isnan(z) == math.isnan(reward) for reward, z in zip(group, found, strict=True))
    assert all(-3 <= z <= 3 for _, z in known)
    if all(abs(z) < 3 for _, z in known):
        assert sum(z for _, z in known) == pytest.approx(0, abs=1e-6)
    ordered = [z for _, z in sorted(known)]
    assert ordered == sorted(ordered)
    if not known or max(r for r, _ in known) - min(r for r, _ in known) > 1:  # not practically equal
        assert standardised([scale * reward + shift for reward in group]) == pytest.approx(found, nan_ok=True, abs=1e-3)


def test_an_owners_answer_by_hand() -> None:
    config = LearnedRewardConfig(weight=0.5)
    group = [attempt("Blue.", tokens=10), attempt(" \n", tokens=1), attempt("Blue and deep.", tokens=20)]
    found = owner_scores(group, [1.0, 0.0, 2.0], config, length_penalty=0.5, max_tokens=20)
    z = 1.5**0.5
    assert [score.reward for score in found] == pytest.approx(
        [0 + 0.5 - 0.25, -0.5 * z + 0.0 - 0.025, 0.5 * z + 0.5 - 0.5]
    )
    assert [score.verdict for score in found] == ["judged"] * 3
    parts = {"learned": 0.0, "learned_z": pytest.approx(-z), "format": 0.0, "length": 0.05}
    assert found[1].parts == parts


@pytest.mark.parametrize("raw", [-50.0, 1.5, 50.0])
def test_a_truncated_answer_gets_the_groups_minimum_whatever_the_model_says(raw: float) -> None:
    group = [attempt(), attempt(), attempt(finish_reason="length")]
    *ended, cut = owner_scores(group, [1.0, 2.0, raw], LearnedRewardConfig(weight=1.0), 0.0, 20)
    assert [score.parts["learned_z"] for score in (*ended, cut)] == [-1.0, 1.0, -1.0]
    assert (cut.reward, cut.parts["learned"], cut.parts["format"]) == (-1.0, raw, 0.0)


def test_an_answer_that_could_not_be_judged_is_not_a_zero() -> None:
    found = owner_scores([attempt()] * 3, [1.0, math.nan, 3.0], LearnedRewardConfig(weight=1.0), 0.0, 20)
    assert [score.reward for score in found] == [-0.5, None, 1.5]
    assert [score.verdict for score in found] == ["judged", "grader_failed", "judged"]


def test_each_group_is_scored_by_itself_and_verified_scores_stay() -> None:
    asked = [attempt(group=group) for group in (0, 1, 0, 1, 2, 2)]
    given: Sequence[Score | None] = [*verified(True), None, *verified(True), None, *verified(False, False)]
    learned = [0.0, 100.0, 2.0, 300.0, 5.0, -5.0]
    found = with_learned(asked, given, learned, LearnedRewardConfig(weight=1.0), length_penalty=0.0, max_tokens=20)
    assert [score.reward for score in found] == pytest.approx([1.0, -0.5, 1.0, 1.5, 0.0, 0.0])
