"""The learned reward: the reward on the owner's prompts, a small tie-breaker next to a verifier."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.schema import RewardConfig
from conf.sections.lessons import LearnedRewardConfig
from rewards.verifier import Attempt, Problem, Score, Verdict
from tasks.reward_model.learned_reward import OWNER, break_ties, owner_scores, standardised, with_learned
from tasks.rollouts.grade import compose

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


def test_what_is_not_finite_does_not_count() -> None:
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
    group = [attempt("Blue.", tokens=10), attempt("", tokens=1), attempt("Blue and deep.", tokens=20)]
    found = owner_scores(group, [1.0, 0.0, 2.0], config, length_penalty=0.5, max_tokens=20)
    z = 1.5**0.5
    assert [score.reward for score in found] == pytest.approx(
        [0 + 0.5 - 0.25, -0.5 * z + 0.0 - 0.025, 0.5 * z + 0.5 - 0.5]
    )
    assert [score.verdict for score in found] == ["judged"] * 3
    parts = {"learned": 0.0, "learned_z": pytest.approx(-z), "format": 0.0, "length": 0.05}
    assert found[1].parts == parts


@pytest.mark.parametrize("wrong", [{"text": " \n"}, {"finish_reason": "length"}])
def test_an_incomplete_or_empty_answer_loses_the_format_part(wrong: dict[str, Any]) -> None:
    good, bad = owner_scores([attempt(), attempt(**wrong)], [1.0, 1.0], LearnedRewardConfig(weight=1.0), 0.0, 20)
    assert (good.parts["format"], bad.parts["format"]) == (1.0, 0.0)
    assert good.reward is not None
    assert bad.reward == good.reward - 0.5


@pytest.mark.parametrize("raw", [-50.0, 1.5, 50.0])
def test_a_truncated_answer_gets_the_groups_minimum_whatever_the_model_says(raw: float) -> None:
    group = [attempt(), attempt(), attempt(finish_reason="length")]
    *ended, cut = owner_scores(group, [1.0, 2.0, raw], LearnedRewardConfig(weight=1.0), 0.0, 20)
    assert [score.parts["learned_z"] for score in (*ended, cut)] == [-1.0, 1.0, -1.0]
    assert (cut.reward, cut.parts["learned"]) == (-1.0, raw)
    step = 0.05 * math.tanh(1.0)
    found = break_ties([group[0], group[2], group[1]], verified(True, True, True), [1.0, raw, 3.0], limit=0.05)
    assert [score.reward for score in found] == pytest.approx([1 - step, 1 - step, 1 + step])
    only_cut = break_ties([group[2]] * 2, verified(True, True), [1.0, raw], limit=0.05)
    assert [score.reward for score in only_cut] == [1.0, 1.0]


def test_an_answer_that_could_not_be_judged_is_not_a_zero() -> None:
    found = owner_scores([attempt()] * 3, [1.0, math.nan, 3.0], LearnedRewardConfig(weight=1.0), 0.0, 20)
    assert [score.reward for score in found] == [-0.5, None, 1.5]
    assert [score.verdict for score in found] == ["judged", "grader_failed", "judged"]


def test_ties_are_broken_among_the_right_answers_only() -> None:
    found = break_ties([attempt()] * 4, verified(True, False, True, False), [1.0, 9.0, 3.0, -9.0], limit=0.05)
    step = 0.05 * math.tanh(1.0)
    assert [score.reward for score in found] == pytest.approx([1 - step, 0.0, 1 + step, 0.0])
    assert found[0].parts == {"correct": 1.0, "learned": 1.0, "learned_z": -1.0, "tie_breaker": pytest.approx(-step)}
    assert found[1].parts == {"correct": 0.0, "learned": 9.0, "tie_breaker": 0.0}


def test_an_answer_without_a_grade_is_not_moved() -> None:
    failed = Score(None, "grader_failed", "no sandbox")
    right = verified(True)[0]
    assert break_ties([attempt()] * 3, [failed, right, right], [9.0, 1.0, math.nan], limit=0.05) == [
        failed,
        Score(1.0, "correct", parts={"correct": 1.0, "learned": 1.0, "learned_z": 0.0, "tie_breaker": 0.0}),
        right,
    ]


graded = st.tuples(
    st.sampled_from(["correct", "wrong", "no_answer"]),
    st.sampled_from([0, 1, 20]),
    numbers | nan,
    st.sampled_from(["stop", "length"]),
)
weights = st.builds(
    RewardConfig, format=st.floats(0, 1), length_penalty=st.sampled_from([0.98, 0.5, 0.0, 0.95, 1.0, 1.5])
)


@given(st.lists(graded, min_size=1, max_size=12), weights, st.just(0.1) | st.floats(0, 0.1))
def test_no_wrong_answer_overtakes_a_right_one_and_a_group_of_wrong_ones_gets_no_signal(
    group: list[tuple[Verdict, int, float, str]], config: RewardConfig, limit: float
) -> None:
    verdicts, tokens, learned, ends = zip(*group, strict=True)
    plain = [Score(float(verdict == "correct"), verdict) for verdict in verdicts]
    attempts = [attempt(tokens=n, finish_reason=end) for n, end in zip(tokens, ends, strict=True)]
    before = [compose(score, own, config, 20) for score, own in zip(plain, attempts, strict=True)]
    was = [score.reward for score in before if score.reward is not None]
    now = [score.reward for score in break_ties(attempts, before, learned, limit) if score.reward is not None]
    assert len(now) == len(group)
    assert all(abs(after - reward) <= limit + 1e-12 for after, reward in zip(now, was, strict=True))
    right = [index for index, verdict in enumerate(verdicts) if verdict == "correct"]
    others = [index for index, verdict in enumerate(verdicts) if verdict != "correct"]
    assert all(now[index] == was[index] for index in others)
    assert all(now[r] >= now[w] for r in right for w in others if was[r] > was[w])


def test_each_group_is_scored_by_itself() -> None:
    asked = [attempt(group=group) for group in (0, 1, 0, 1, 2, 2)]
    given: Sequence[Score | None] = [*verified(True), None, *verified(True), None, *verified(False, False)]
    learned = [0.0, 100.0, 2.0, 300.0, 5.0, -5.0]
    found = with_learned(
        asked, given, learned, LearnedRewardConfig(weight=1.0), length_penalty=0.0, max_tokens=20, limit=0.1
    )
    step = 0.1 * math.tanh(1.0)
    assert [score.reward for score in found] == pytest.approx([1 - step, -0.5, 1 + step, 1.5, 0.0, 0.0])
