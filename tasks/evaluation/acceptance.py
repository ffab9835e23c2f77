"""Judge whether the candidate should be promoted, and give the reasons in sentences."""

from tasks.evaluation.comparison import Comparison
from tasks.evaluation.statistics import bad_luck, probability, signed

MAX_NULL_SHARE = 0.01
MOST_BAD_LUCK = 0.25  # if a guard is likelier than this to refuse an equally good candidate, its sentence says so


def judge_target(target: Comparison, level: float, most: int, better: bool) -> str:
    """Return a sentence that states the exam's result on its target.

    `level`: the last look's significance level. `most`: the maximum number of problems. `better`: whether p ≤ `level`.
    """
    verb = "solved" if target.after.counted else "reached"
    verdict = "at most" if better else "above"
    return (
        f"{target.name}: the candidate {verb} {target.after}, the champion {target.before}: "
        f"{signed(target.difference)}, 95 % interval {signed(target.low)} to {signed(target.high)}; "
        f"{probability(target.p_value)}, {verdict} this look's level {level:.2g} ({target.n + target.nulls} of at most "
        f"{most} problems){'' if better else ': not enough to promote'}."
    )


def judge_guard(
    guard: Comparison, margin: float, than: str = "", champion: Comparison | None = None
) -> tuple[bool, str]:
    """Return whether the candidate passes a guard, and a sentence that says why.

    It passes if the difference's one-sided lower bound is above −`margin`.

    `than`: the model that the candidate is compared with, if not the champion. `champion`: the champion's comparison
    with that model. If the candidate and the champion both fail, the reason says so.
    """
    if (refusal := refuse_ungraded(guard)) is not None:
        return False, refusal
    passed = guard.guard_low > -margin
    digits = 2 if round(guard.guard_low, 2) != round(-margin, 2) else 4
    change = signed(guard.difference) if guard.gained != guard.lost else "no change"
    against = f" against {than}" if than else ""
    bounds = f"lower bound {signed(guard.guard_low, digits)}; allowed {signed(-margin, digits)}"
    reason = f"Guard {guard.name}{against}: {change} ({bounds}){'' if passed else ': not passed'}."
    if guard.before.accuracy < margin and not than:
        reason += " The champion solves less than the margin, so this guard can hardly fail."
    flipped = (guard.gained + guard.lost) / guard.n
    if not passed and champion is not None and champion.guard_low <= -margin:
        reason += (
            f" The champion itself is below that margin ({signed(champion.difference)}), so only a candidate that "
            "makes up for it can be promoted: go back to an earlier version with `nightschool promote`, or widen the "
            "margin in exam.guards."
        )
    elif (
        not passed
        and guard.before.counted
        and flipped
        and (chance := bad_luck(guard.n, margin, flipped)) > MOST_BAD_LUCK
    ):
        reason += (
            f" With {guard.n} problems, an equally good candidate would be rejected in {chance:.0%} of such nights."
        )
    return passed, reason


def refuse_ungraded(part: Comparison) -> str | None:
    """Return why a part of the exam cannot be decided (too many ungraded pairs, or no graded ones), else None."""
    pairs = part.n + part.nulls
    if part.nulls > MAX_NULL_SHARE * pairs:
        return f"{part.name}: the grader failed on {part.nulls} of {pairs} problems, more than 1 %: no decision."
    return None if part.n else f"{part.name}: no problem was answered: no decision."
