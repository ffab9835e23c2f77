"""What a learned reward says in GRPO: on the owner's own prompts it is the reward, elsewhere it breaks ties."""

import math
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from conf.sections.lessons import LearnedRewardConfig
from rewards.verifier import Attempt, Score

OWNER = "owner"  # stands where a problem's benchmark would, for the owner's own prompts
MOST = 3.0  # standard deviations: one answer that the reward model is mad about is no more than far ahead
ALIKE = 1e-4  # a group whose rewards spread less is one of equals: what is left is rounding


def with_learned(
    attempts: Sequence[Attempt],
    scores: Sequence[Score | None],
    learned: Sequence[float],
    config: LearnedRewardConfig,
    *,
    length_penalty: float,
    max_tokens: int,
    most: float,
) -> list[Score]:
    """The scores with the learned reward in them, group by group.

    `scores`: a verifier's, composed; None for an answer to one of the owner's own prompts. `learned`: the reward
    model's, one an attempt; NaN where it gave none. `most`: by how much a tie-breaker may change a reward.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    for index, attempt in enumerate(attempts):
        groups[attempt.group].append(index)
    found: dict[int, Score] = {}
    for rows in groups.values():
        group, own = [attempts[row] for row in rows], [learned[row] for row in rows]
        graded = [score for row in rows if (score := scores[row]) is not None]
        if graded:
            new = tie_broken(group, graded, own, most)
        else:
            new = owner_scores(group, own, config, length_penalty, max_tokens)
        found |= dict(zip(rows, new, strict=True))
    return [found[index] for index in range(len(attempts))]


def owner_scores(
    group: Sequence[Attempt],
    learned: Sequence[float],
    config: LearnedRewardConfig,
    length_penalty: float,
    max_tokens: int,
) -> list[Score]:
    """The scores of one group of answers to an owner's prompt: `weight`·z + `format`·f + `language`·s − `penalty`·l.

    z is the learned reward, standardised within the group; what can be known without a truth is checked: f is 1 for an
    answer that came to its end and is not empty, s is 1 unless a prompt in Latin script is answered mostly in another,
    l is the length as a share of `max_tokens`. They are the score's parts, unweighted, with the learned reward itself.
    An answer that the reward model could not judge has no reward, and is no part of the group.
    """
    scores = []
    for attempt, raw, z in zip(group, learned, standings(group, learned), strict=True):
        if math.isnan(z):
            scores.append(Score(None, "grader_failed", "the reward model gave no number"))
            continue
        form = float(attempt.finish_reason == "stop" and bool(attempt.completion.strip()))
        script = float(not leaves_latin(attempt.problem.question, attempt.completion))
        length = attempt.tokens / max_tokens
        reward = config.weight * z + config.format * form + config.language * script - length_penalty * length
        parts = {"learned": raw, "learned_z": z, "format": form, "language": script, "length": length}
        scores.append(Score(reward, "judged", parts=parts))
    return scores


def tie_broken(
    group: Sequence[Attempt], verified: Sequence[Score], learned: Sequence[float], most: float
) -> list[Score]:
    """One group's verified scores; those of its correct answers moved by `most`·tanh(z), z being the learned reward's
    standing among them. `most` is cut to what the least of them has more than the best of the others.

    Only what the verifier found correct is told apart, so that no wrong answer overtakes a right one, and a group
    without a right one gets no signal. Every score has the learned reward, and what it changed, among its parts.
    """
    rewards = {index: score.reward for index, score in enumerate(verified) if score.reward is not None}
    right = [index for index in rewards if verified[index].verdict == "correct"]
    others = [reward for index, reward in rewards.items() if index not in right]
    if right and others:
        most = min(most, max(0.0, min(rewards[index] for index in right) - max(others)))
    among = standings([group[index] for index in right], [learned[index] for index in right])
    standing = dict(zip(right, among, strict=True))
    scores = []
    for index, (score, raw) in enumerate(zip(verified, learned, strict=True)):
        if score.reward is None or math.isnan(raw):
            scores.append(score)
            continue
        z = standing.get(index)
        moved = 0.0 if z is None else most * math.tanh(z)
        known = {} if z is None else {"learned_z": z}
        parts = {**score.parts, "learned": raw, **known, "tie_breaker": moved}
        scores.append(replace(score, reward=score.reward + moved, parts=parts))
    return scores


def standings(group: Sequence[Attempt], learned: Sequence[float]) -> list[float]:
    """The learned rewards of a group, standardised; NaN where there is none.

    An answer that was cut is no part of that: the model has learnt of answers' ends, and its word there may be
    anything. It gets the group's least.
    """
    ended = [raw if attempt.finish_reason == "stop" else math.nan for attempt, raw in zip(group, learned, strict=True)]
    found = standardised(ended)
    least = min((z for z in found if not math.isnan(z)), default=0.0)
    return [least if math.isnan(z) and math.isfinite(raw) else z for z, raw in zip(found, learned, strict=True)]


def standardised(rewards: Sequence[float]) -> list[float]:
    """The rewards with mean 0 and standard deviation 1, none farther than 3 from 0; all 0 where they are alike.

    What is not finite is NaN, and does not count.
    """
    known = [reward for reward in rewards if math.isfinite(reward)]
    centre, spread = (fmean(known), pstdev(known)) if known else (0.0, 0.0)
    if spread <= ALIKE:
        return [0.0 if math.isfinite(reward) else math.nan for reward in rewards]
    return [
        max(-MOST, min(MOST, (reward - centre) / spread)) if math.isfinite(reward) else math.nan for reward in rewards
    ]


def leaves_latin(prompt: str, answer: str) -> bool:
    """Whether a prompt in Latin script has an answer that is mostly in another. Without letters nothing is known."""
    asked, answered = latin_share(prompt), latin_share(answer)
    return asked is not None and answered is not None and asked > 0.5 > answered


def latin_share(text: str) -> float | None:
    """The share of a text's letters that are Latin; None where it has none."""
    letters = [letter for letter in text if letter.isalpha()]
    if not letters:
        return None
    return sum("LATIN" in unicodedata.name(letter, "") for letter in letters) / len(letters)
