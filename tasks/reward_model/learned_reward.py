"""The learned reward in GRPO: the main reward for answers to the owner's prompts."""

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, pstdev

from conf.sections.lessons import LearnedRewardConfig
from rewards.verifier import Attempt, Score

OWNER = "owner"  # takes the place of a benchmark's name for the owner's prompts
COMPLETE = 0.5  # reward of an answer that ended by itself, not at the length limit
CLIP = 3.0  # largest |z|, in standard deviations, so that one outlier cannot dominate a group
ROUNDING = 1e-4  # rewards whose standard deviation is at most this count as equal


def with_learned(
    attempts: Sequence[Attempt],
    scores: Sequence[Score | None],
    learned: Sequence[float],
    config: LearnedRewardConfig,
    *,
    length_penalty: float,
    max_tokens: int,
) -> list[Score]:
    """Score the answers to the owner's prompts by the learned reward, and return all scores in the same order.

    `scores`: the verifier's scores, None for answers to the owner's prompts. `learned`: each attempt's learned reward,
    NaN if it has none.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    result = dict(enumerate(scores))
    for index, attempt in enumerate(attempts):
        if scores[index] is None:
            groups[attempt.group].append(index)
    for rows in groups.values():
        group, rewards = [attempts[row] for row in rows], [learned[row] for row in rows]
        result |= zip(rows, owner_scores(group, rewards, config, length_penalty, max_tokens), strict=True)
    return [score for score in result.values() if score is not None]


def owner_scores(
    group: Sequence[Attempt],
    learned: Sequence[float],
    config: LearnedRewardConfig,
    length_penalty: float,
    max_tokens: int,
) -> list[Score]:
    """Score a group of answers to one of the owner's prompts by `weight`·z + f/2 − `length_penalty`·l.

    z is the learned reward, standardised within the group. f is 1 for a non-empty answer that ended by itself, else 0.
    l is the length as a share of `max_tokens`. The score's parts are z, f, l and the learned reward before it was
    standardised. An answer without a learned reward gets no reward and does not affect its group's z.
    """
    scores = []
    for attempt, raw, z in zip(group, learned, standings(group, learned), strict=True):
        if math.isnan(z):
            scores.append(Score(None, "grader_failed", "the reward model gave no number"))
            continue
        complete = float(attempt.finish_reason == "stop" and bool(attempt.completion.strip()))
        length = attempt.tokens / max_tokens
        reward = config.weight * z + COMPLETE * complete - length_penalty * length
        parts = {"learned": raw, "learned_z": z, "format": complete, "length": length}
        scores.append(Score(reward, "judged", parts=parts))
    return scores


def standings(group: Sequence[Attempt], learned: Sequence[float]) -> list[float]:
    """Return a group's standardised learned rewards, with NaN for an answer that has no learned reward.

    The reward model was fitted to complete answers only, so a truncated answer gets the lowest z of the complete ones.
    """
    pairs = zip(group, learned, strict=True)
    complete = [raw if attempt.finish_reason == "stop" else math.nan for attempt, raw in pairs]
    z_scores = standardised(complete)
    minimum = min((z for z in z_scores if not math.isnan(z)), default=0.0)
    return [minimum if math.isnan(z) and math.isfinite(raw) else z for z, raw in zip(z_scores, learned, strict=True)]


def standardised(rewards: Sequence[float]) -> list[float]:
    """Standardise rewards to mean 0 and standard deviation 1, clipped to ±3. Practically equal rewards become 0.

    Rewards that are not finite become NaN and do not affect the others.
    """
    finite = [reward for reward in rewards if math.isfinite(reward)]
    mean, deviation = (fmean(finite), pstdev(finite)) if finite else (0.0, 0.0)
    if deviation <= ROUNDING:
        return [0.0 if math.isfinite(reward) else math.nan for reward in rewards]
    z_scores = [(reward - mean) / deviation if math.isfinite(reward) else math.nan for reward in rewards]
    return [z if math.isnan(z) else max(-CLIP, min(CLIP, z)) for z in z_scores]
