"""The reward of a completion, composed of its parts with the configured weights."""

from dataclasses import replace

from conf.schema import RewardConfig
from rewards.verifier import Attempt, Score


def compose(score: Score, attempt: Attempt, config: RewardConfig, max_tokens: int) -> Score:
    """Return the score with the reward c + `format`·f − `length_penalty`·l.

    c is the benchmark's own reward (1 for a correct answer), f is 0 for the verdict `no_answer` and 1 otherwise, and l
    is the completion's length as a share of `max_tokens`. The score's parts `correct`, `format` and `length` hold the
    unweighted values, next to the benchmark's own parts. With the default weights, which are 0, the reward
    is unchanged. A reward of None stays None: a failure of the grader is no zero.
    """
    if score.reward is None:
        return score
    answered = float(score.verdict != "no_answer")
    length = attempt.tokens / max_tokens
    reward = score.reward + config.format * answered - config.length_penalty * length
    parts = {**score.parts, "correct": score.reward, "format": answered, "length": length}
    return replace(score, reward=reward, parts=parts)
