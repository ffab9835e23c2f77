"""The watch for over-optimisation: a learned reward pleased by what the owner does not want (arXiv 2210.10760)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from tasks.evaluation.statistics import mcnemar
from tasks.monitoring.alarms import Alarm

Figures = Mapping[str, float]  # a round's: the keys of metrics.json
# By the first round of a block, and the round after which (as the block begins: the one before the first): whether each
# held-out pick was ranked first.
Rankings = Mapping[tuple[int, int], Sequence[bool]]

WATCHED = ("reward/learned_owner", "reward/learned")  # the first that the rounds have
WINDOW = 3  # rounds over which the learned reward is taken together: one round's prompts are few
RISE = 0.1  # of the spread of the learned reward within a group, at the start
CHANCE = 0.05  # probability of so many picks lost by a student that ranks no worse


def learned_reward_hacked(rounds: Sequence[Figures], rankings: Rankings) -> Alarm | None:
    """The alarm over the first round after which the learned reward had risen while the student's own ranking of the
    owner's picks had fallen; None where there is none.

    Both are compared with the start of their block of rounds, since a lesson before it changes them, too: the rewards
    as means of up to three rounds that do not overlap, the rankings pick by pick, with McNemar's exact test
    (one-sided). What comes of it depends on committed figures alone.
    """
    for first, number in sorted(rankings):
        before, after = rankings.get((first, first - 1)), rankings[first, number]
        if before is None or not first <= number <= len(rounds):
            continue
        rewards, spread = risen(rounds[first - 1 : number])
        if rewards[1] - rewards[0] > RISE * spread and fell(before, after) <= CHANCE:
            return Alarm(
                "learned_reward_hacked",
                False,
                f"The learned reward rose from {rewards[0]:.2f} to {rewards[1]:.2f} by round {number} while the share "
                "of the owner's held-out picks that the student itself ranks first fell from "
                f"{fmean(before):.2f} to {fmean(after):.2f}: from then on it was not used.",
                number,
            )
    return None


def unwatched(before: Sequence[bool]) -> str | None:
    """Why the alarm cannot ring in a block that begins with this ranking, as half a sentence; None where it can: the
    student has five picks at least that it can lose.
    """
    if fell(before, [False] * len(before)) <= CHANCE:
        return None
    return (
        f"the learned reward cannot be watched: the student ranks {sum(before)} of {len(before)} held-out picks first, "
        "and chance alone may lose so few"
    )


def risen(rounds: Sequence[Figures]) -> tuple[tuple[float, float], float]:
    """The mean learned reward of the first rounds and of the last, and its spread within a group at the start.

    On the owner's own prompts, where there are any: elsewhere it breaks ties only, and says little of what it does.
    """
    name = next((name for name in WATCHED if any(name in figures for figures in rounds)), WATCHED[-1])
    judged = [figures for figures in rounds if name in figures]
    width = min(WINDOW, len(judged) // 2)
    if width == 0:
        return (0.0, 0.0), 0.0
    first, last = (fmean(one[name] for one in part) for part in (judged[:width], judged[-width:]))
    return (first, last), fmean(one["reward/learned_spread"] for one in judged[:width])


def fell(before: Sequence[bool], after: Sequence[bool]) -> float:
    """How likely chance alone loses so many of the picks that changed sides: McNemar's test, of the losses."""
    lost = sum(was and not now for was, now in zip(before, after, strict=True))
    won = sum(now and not was for was, now in zip(before, after, strict=True))
    return mcnemar(lost, won)
