"""The promotion decision: is the candidate significantly better than the champion, and does it pass the guards?"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from conf.sections.exam import ExamConfig
from tasks.evaluation.comparison import Comparison, compare
from tasks.evaluation.english import FILE, judge_english
from tasks.evaluation.evaluate import LOOK
from tasks.evaluation.sequential import detects, levels
from tasks.evaluation.statistics import Accuracy, bad_luck, mcnemar, probability, signed
from tasks.evaluation.taste import Taste, compare_taste, favours
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, read_table
from tasks.training.take_back import LEVEL, p_worse

FIRST = "the first student"
MASTERED = (
    "This exam can no longer promote: even a candidate that solved all of it would gain too little to rule out chance. "
    "Add problems to it, or harder ones."
)
MOST_UNPROMOTED = 3  # consecutive nights that may begin with an unpromoted candidate
MAX_NULL_SHARE = 0.01  # of the pairs of a part; if more are ungraded, there is no decision
MOST_BAD_LUCK = 0.25  # if a guard is likelier than this to refuse an equally good candidate, its sentence says so


@stage()
def decide(
    folder: Path,
    *,
    looks: tuple[Artifact, ...],
    planned: tuple[int, ...],
    exams: Mapping[str, Artifact],
    whole: Mapping[str, Artifact],
    quizzes: Mapping[str, Artifact],
    digests: Mapping[str, str],
    exam: ExamConfig,
    alpha: float,
    seed: int,
    unpromoted: int = 0,
    champion_picks: Artifact | None = None,
    candidate_picks: Artifact | None = None,
    severe: tuple[str, ...] = (),
) -> None:
    """Write `decision.json`: whether the candidate is promoted, whether the next night begins with it, and why.

    The candidate is promoted if all of these rules hold:

    - It is significantly better, either at the last of the `looks` (at that look's share of `alpha`) or on your
      held-out picks (at `alpha`). If only on the picks, its loss on the exam's target must stay within the margin.
    - It passes the guards: against the champion, and against the first student if that is a different model.
    - There is no severe alarm, and the candidate is not the champion itself.

    Without a severe alarm, the next night begins with an unpromoted candidate if it was ahead at the last look, passed
    the quiz and all guards that were examined, and is not the fourth such candidate in a row. `unpromoted`: how many
    came before.
    `planned`: the number of problems at each look. `exams`: the exams of `champion`, `candidate` and `first`. `whole`:
    exams of `distilled` and `candidate` on all problems, if `exam.after_lessons` is set. `quizzes`: the quizzes at the
    `start` and `end` of the night. `digests`: the digests of champion, start, distilled and candidate.
    """
    last, taste = looks[-1].read_json(LOOK), compare_taste(champion_picks, candidate_picks, alpha)
    rows = {role: _evaluations(each) for role, each in exams.items()}
    pair = partial(compare, seed=seed)
    guards = [part for part in exam.guards if (rows["candidate"].benchmark == part.name).any()]  # tonight's guards
    parts = (exam.target, *guards)
    against = {part.name: pair(part.name, rows["champion"], rows["candidate"]) for part in parts}
    target = against[exam.target.name]
    wins, reasons = _decide_target(target, last, planned, exam, alpha, taste)
    checks: list[tuple[bool, str]] = []  # the guards, whatever the target says
    for guard in guards:
        checks.append(judge_guard(against[guard.name], guard.margin))
        if "first" in rows:
            champion, candidate = (pair(guard.name, rows["first"], rows[role]) for role in ("champion", "candidate"))
            checks.append(judge_guard(candidate, guard.margin, FIRST, champion))
    for role, than in (("champion", ""), ("first", FIRST)):
        if exam.english_margin is not None and role in exams and (exams["candidate"].folder / FILE).exists():
            checks.append(judge_english(exams[role], exams["candidate"], exam.english_margin, than))
    passed = all(holds for holds, _ in checks) and not severe
    promote = wins and passed
    vetoes = [f"Nothing is promoted after a severe alarm. {sentence}" for sentence in severe]
    ahead = last["difference"] > 0 and target.before_digest != target.after_digest
    goes_on = ahead and passed and _passed_quiz(quizzes) and not promote and unpromoted < MOST_UNPROMOTED
    after = [] if promote else [_on_next_night(goes_on, ahead)]
    if promote and exam.next_level_at is None and is_mastered(target.after, planned, alpha):
        after = [MASTERED]
    grown = [_evaluations(whole[role]) for role in ("distilled", "candidate")] if whole else None
    written: dict[str, Any] = {
        "promote": promote,
        "reasons": [*vetoes, *reasons, *(sentence for _, sentence in checks), *after],
        "target": exam.target.name,
        "alpha": alpha,
        "looks": [each.read_json(LOOK) for each in looks],
        "planned": planned,
        "next_night_begins_with_it": goes_on,
        "unpromoted": unpromoted + 1 if goes_on else 0,
        "digests": dict(digests),
        "comparisons": {"candidate": {name: dataclasses.asdict(found) for name, found in against.items()}},
        "taste": taste and dataclasses.asdict(taste),
        "growth": grown and dataclasses.asdict(pair(exam.target.name, *grown)),
    }
    (folder / "decision.json").write_text(json.dumps(written, indent=1))


def _evaluations(exam: Artifact) -> pd.DataFrame:
    return read_table(exam.folder / "evaluations.parquet", EVALUATIONS)


def _decide_target(
    target: Comparison,
    last: Mapping[str, Any],
    planned: tuple[int, ...],
    exam: ExamConfig,
    alpha: float,
    taste: Taste | None,
) -> tuple[bool, list[str]]:
    """Return whether the candidate wins by the exam's target or the held-out picks, and sentences that say why.

    A significant gain on either is enough.
    """
    better, by_picks = last["verdict"] == "better", taste is not None and taste.p_value <= alpha
    if target.before_digest == target.after_digest:
        return False, [f"The candidate is the champion itself ({target.after_digest[:12]})."]
    if (refusal := refuse_ungraded(target)) is not None:
        return False, [refusal]
    wins, reasons = better or by_picks, [judge_target(target, last["level"], planned[-1], better)]
    if by_picks and not better:
        wins, reason = judge_guard(target, exam.target.margin)
        reasons.append(reason)
    elif not better and is_mastered(target.before, planned, alpha):
        reasons.append(MASTERED)
    elif not better and target.before.counted and (detected := detects(planned, alpha)):
        reasons.append(f"An exam of up to {planned[-1]} problems detects {detected}.")
    if taste is not None:
        decides = ": your picks decide" if wins and not better else ""
        reasons.append(f"Your held-out picks: the candidate {favours(taste)}{decides}.")
    return wins, reasons


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


def is_mastered(champion: Accuracy, planned: Sequence[int], alpha: float) -> bool:
    """Return whether solving all problems that the champion fails would not be a significant gain.

    False for episodes, whose values have no common limit.
    """
    failed = round((1 - champion.accuracy) * planned[-1])
    return champion.counted and mcnemar(failed, 0) > levels(planned, alpha)[-1]


def _on_next_night(goes_on: bool, ahead: bool) -> str:
    if goes_on:
        return "The candidate was ahead but is not proven: with `start_from: latest`, the next night begins with it."
    if not ahead:
        return "The next night begins with the champion."
    return (
        "The candidate was ahead, but the next night begins with the champion: this one failed a check, or was the "
        "fourth in a row."
    )


def _passed_quiz(quizzes: Mapping[str, Artifact]) -> bool:
    """Return whether the quiz at the night's end went no worse than the one at its start; True if one is missing."""
    return not {"start", "end"} <= quizzes.keys() or p_worse(quizzes["start"], quizzes["end"]) >= LEVEL
