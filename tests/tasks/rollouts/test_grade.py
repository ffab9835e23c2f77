"""The composed reward, by hand; the defaults change nothing."""

import pytest

from conf.schema import RewardConfig
from rewards.verifier import Attempt, Problem, Score
from tasks.rollouts.grade import compose

PROBLEM = Problem("g/1", "gsm8k", "How many?", "#### 4")
CORRECT, WRONG, SILENT = Score(1.0, "correct"), Score(0.0, "wrong"), Score(0.0, "no_answer")


def attempt(tokens: int) -> Attempt:
    return Attempt(PROBLEM, "#### 4", tokens=tokens)


@pytest.mark.parametrize(
    ("score", "tokens", "weights", "reward"),
    [
        (CORRECT, 30, (0.0, 0.0), 1.0),
        (WRONG, 30, (0.0, 0.0), 0.0),
        (SILENT, 30, (0.0, 0.0), 0.0),
        (CORRECT, 30, (0.25, 0.0), 1.25),
        (WRONG, 30, (0.25, 0.0), 0.25),  # wrong, but in the format
        (SILENT, 30, (0.25, 0.0), 0.0),
        (Score(0.0, "crashed"), 30, (0.25, 0.0), 0.25),  # a program was there
        (CORRECT, 30, (0.0, 0.5), 1.0 - 0.5 * 30 / 120),
        (CORRECT, 120, (0.0, 0.5), 0.5),
        (SILENT, 120, (0.25, 0.5), -0.5),
        (CORRECT, 60, (0.25, 0.5), 1.0),
        (Score(0.5, "wrong"), 60, (0.0, 0.0), 0.5),  # a benchmark's own partial credit
    ],
)
def test_rewards_by_hand(score: Score, tokens: int, weights: tuple[float, float], reward: float) -> None:
    form, penalty = weights
    config = RewardConfig(format=form, length_penalty=penalty)
    found = compose(score, attempt(tokens), config, 120)
    assert found.reward == pytest.approx(reward)
    assert found.verdict == score.verdict


def test_the_parts_stay_apart_and_unweighted() -> None:
    score = Score(1.0, "correct", "answered 4", {"correct": 1.0, "literals": 1.0}, 0.25)
    found = compose(score, attempt(30), RewardConfig(format=0.1, length_penalty=0.2), 120)
    assert found.parts == {"correct": 1.0, "literals": 1.0, "format": 1.0, "length": 0.25}
    assert (found.detail, found.seconds) == ("answered 4", 0.25)
    assert score.parts == {"correct": 1.0, "literals": 1.0}
    assert compose(SILENT, attempt(0), RewardConfig(), 120).parts == {"correct": 0.0, "format": 0.0, "length": 0.0}


def test_a_failure_of_the_grader_has_no_reward() -> None:
    failed = Score(None, "grader_failed", "the worker died")
    config = RewardConfig(format=0.5, length_penalty=0.5)
    assert compose(failed, attempt(60), config, 120) == failed
