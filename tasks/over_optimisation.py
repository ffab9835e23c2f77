"""The watch for over-optimisation: a learned reward pleased by what the owner does not want (arXiv 2210.10760)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from tasks.alarms import Alarm
from tasks.decision import mcnemar

Figures = Mapping[str, float]  # a round's: the keys of metrics.json
Rankings = Mapping[int, Sequence[bool]]  # by round, 0 before the first: whether each held-out pick was ranked first

WATCHED = ("reward/learned_owner", "reward/learned")  # the first that the rounds have
WINDOW = 3  # rounds over which the learned reward is taken together: one round's prompts are few
RISE = 0.1  # of the spread of the learned reward within a group, at the start
CHANCE = 0.05  # probability of so many picks lost by a student that ranks no worse


def learned_reward_hacked(rounds: Sequence[Figures], rankings: Rankings) -> Alarm | None:
    """The alarm over the first round after which the learned reward had risen while the student's own ranking of the
    owner's picks had fallen; None where there is none.

    Both are compared with the start of the night: the rewards as means of up to three rounds that do not overlap, the
    rankings pick by pick, with McNemar's exact test (one-sided). What comes of it depends on committed figures alone.
    """
    before = rankings.get(0)
    for number in sorted(rankings):
        if before is None or not 0 < number <= len(rounds):
            continue
        rewards, spread = risen(rounds[:number])
        if rewards[1] - rewards[0] > RISE * spread and fell(before, rankings[number]) <= CHANCE:
            return Alarm(
                "learned_reward_hacked",
                False,
                f"The learned reward rose from {rewards[0]:.2f} to {rewards[1]:.2f} by round {number} while the share "
                "of the owner's held-out picks that the student itself ranks first fell from "
                f"{fmean(before):.2f} to {fmean(rankings[number]):.2f}: from then on it was not used.",
                number,
            )
    return None


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
