"""The reward of a completion, composed from its score as the configuration says; the parts stay apart in the score."""

from dataclasses import replace

from conf.schema import RewardConfig
from rewards.verifier import Attempt, Score


def compose(score: Score, attempt: Attempt, config: RewardConfig, max_tokens: int) -> Score:
    """The score with the composed reward: `correct`·c + `format`·f − `length_penalty`·l.

    c is the benchmark's own reward (1 for a correct answer), f is 1 unless there was no answer in the format asked for
    (verdict `no_answer`), and l is the completion's length as a share of `max_tokens`. The three are the score's parts
    `correct`, `format` and `length`, unweighted, next to whatever parts the benchmark gave. With the default weights
    (1, 0, 0) the reward is the benchmark's own. A reward of None stays None: a failure of the grader is no zero, and
    says nothing about the completion's format either.
    """
    if score.reward is None:
        return score
    form = float(score.verdict != "no_answer")
    length = attempt.tokens / max_tokens
    reward = config.correct * score.reward + config.format * form - config.length_penalty * length
    return replace(
        score, reward=reward, parts={**score.parts, "correct": score.reward, "format": form, "length": length}
    )
