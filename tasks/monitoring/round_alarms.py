"""Alarms about the rounds' metrics, checked after every round.

docs/how-to/every-night.md explains what each alarm means and what to do about it.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from statistics import fmean, median

from tasks.monitoring.alarms import Alarm
from tasks.report.text import percent
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.verdicts import FAILED

Figures = Mapping[str, float]  # a round's metrics, as in metrics.json
Quizzes = Mapping[int, tuple[int, int]]  # by round: number of correct answers, number of graded answers

LITTLE_SIGNAL = 0.1  # share of useful groups; healthy nights have 0.3 to 0.8
WINDOW = 3  # rounds over which shares and rewards are averaged, since single rounds are noisy
MOST_FAILED = 0.5  # share of a round's completions; beyond it, the rest no longer represents the student
MASKED_LIMIT, MASKED_FAR = 0.01, 0.25  # share of completions masked (outside the band); healthy: 0
K3_LIMIT = 0.05  # nats per token; a healthy bf16 pair has about 0.001, or 0.01 if |π−μ| reaches 0.05
LENGTH_CHANGED, LENGTH_GONE = 3, 10  # times shorter, or longer, than in round 1
CUT_SHARE, CUT_RISE = 0.5, 0.3  # share of completions cut off at the length limit, and its rise since round 1
ENTROPY_LOW, ENTROPY_KEPT = 0.01, 0.1  # nats per token, and share of the first entropy; the starter model stays at 0.1
MASTERED = 0.9  # share of correct completions above which low entropy is fine
TIMES_MEDIAN, TIMED_BEFORE = 3, 3  # multiple of the median that makes a round slow; rounds needed for a median
QUIZ_ERRORS = 3  # standard errors by which a quiz must have fallen; the best of several quizzes is partly luck
REWARD_RISE = 0.02
# Defaults of metrics that a round without an optimizer step lacks. NaN compares as false, so it raises no alarm.
MISSING = dict.fromkeys(("completion_length", "truncated_share"), math.nan) | dict.fromkeys(
    ("non_finite_steps", "masked_share", "sampler_k3"), 0.0
)


def round_alarms(rounds: Sequence[Figures], quizzes: Quizzes | None = None) -> list[Alarm]:
    """Return the alarms about the rounds so far, at most one per name. `quizzes`: the results of quizzes, by round."""
    if not rounds:
        return []
    rounds = [{**MISSING, **figures} for figures in rounds]
    alarms = [check(rounds) for check in CHECKS] + [_reward_up_quiz_down(rounds, quizzes or {})]
    return [alarm for alarm in alarms if alarm is not None]


def _no_signal(rounds: Sequence[Figures]) -> Alarm | None:
    recent = rounds[-WINDOW:]
    signal = sum(r["useful_groups"] for r in recent) / sum(r["groups"] for r in recent)  # share of all sampled groups
    if signal >= LITTLE_SIGNAL:
        return None
    last = len(rounds)
    where = f"rounds {last - len(recent) + 1} to {last}" if len(recent) > 1 else f"round {last}"
    return _alarm(
        "no_signal",
        f"Hardly any group had a signal ({percent(signal, 0)}) in {where}: "
        "the problems are too hard or too easy to learn from",
        [last],
    )


def _skipped_updates(rounds: Sequence[Figures]) -> Alarm | None:
    skipped = _where(rounds, lambda r: r["skipped"] > 0)
    return _alarm("skipped_updates", f"No step was taken in {_listed(skipped)}: too few groups had a signal", skipped)


def _non_finite_steps(rounds: Sequence[Figures]) -> Alarm | None:
    bad = _where(rounds, lambda r: r["non_finite_steps"] > 0)
    return _alarm("non_finite_steps", f"Steps were skipped in {_listed(bad)}: loss or gradients were not finite", bad)


def _graders_failing(rounds: Sequence[Figures]) -> Alarm | None:
    some = _where(rounds, lambda r: r["null_rewards"] > 0)
    of_owner = f"verdicts/{OWNER}/{FAILED}"  # failures of the reward model are no reason to end training
    most = _where(rounds, lambda r: 0 < MOST_FAILED * _completions(r) < r["null_rewards"] - r.get(of_owner, 0))
    failed = sum(r["null_rewards"] for r in rounds)
    return _alarm(
        "graders_failing",
        f"The grader failed on {failed:.0f} completions{_by_benchmark(rounds)} in {_listed(some)}; they were left out",
        some,
        most,
    )


def _mismatch(rounds: Sequence[Figures]) -> Alarm | None:
    some = _where(rounds, lambda r: r["masked_share"] > MASKED_LIMIT or r["sampler_k3"] > K3_LIMIT)
    far = _where(rounds, lambda r: r["masked_share"] > MASKED_FAR)
    worst, k3 = (max(r[name] for r in rounds) for name in ("masked_share", "sampler_k3"))
    return _alarm(
        "mismatch",
        f"Sampler and trainer disagreed in {_listed(some)}: up to {percent(worst)} of the completions were masked, "
        f"k3 was up to {k3:.2g} nats",
        some,
        far,
    )


def _length_collapse(rounds: Sequence[Figures]) -> Alarm | None:
    first = _first_length(rounds)
    some = _where(rounds, lambda r: LENGTH_CHANGED * r["completion_length"] < first)
    gone = _where(rounds, lambda r: LENGTH_GONE * r["completion_length"] < first)
    return _alarm(
        "length_collapse",
        f"Completions shrank from {first:.0f} tokens to less than a third in {_listed(some)}",
        some,
        gone,
    )


def _length_explosion(rounds: Sequence[Figures]) -> Alarm | None:
    first, cut = _first_length(rounds), rounds[0]["truncated_share"]
    at_limit = _where(rounds, lambda r: r["truncated_share"] > max(CUT_SHARE, cut + CUT_RISE))
    some = _where(rounds, lambda r: r["completion_length"] > LENGTH_CHANGED * first)
    last = max(some + at_limit, default=1)
    tokens, share = (rounds[last - 1][name] for name in ("completion_length", "truncated_share"))
    sentence = (
        f"Completions grew from {first:.0f} to {tokens:.0f} tokens by round {last}, and {percent(share, 0)} of them "
        "were cut off"
    )
    return _alarm("length_explosion", sentence, some, at_limit)


def _first_length(rounds: Sequence[Figures]) -> float:
    """Return the completions' length in the first round that has one. If all prompts have hints, a round has none."""
    return next((length for r in rounds if not math.isnan(length := r["completion_length"])), math.nan)


def _entropy_collapse(rounds: Sequence[Figures]) -> Alarm | None:
    first = next((r["entropy"] for r in rounds if "entropy" in r), 0.0)
    limit = min(ENTROPY_LOW, ENTROPY_KEPT * first)
    collapsed = _where(rounds, lambda r: r.get("entropy", math.inf) < limit and not _mastered(r))
    return _alarm(
        "entropy_collapse",
        f"The student hardly explores any more: its entropy fell from {first:.2g} nats to below {limit:.2g} "
        f"in {_listed(collapsed)}",
        severe=collapsed,
    )


def _slow_round(rounds: Sequence[Figures]) -> Alarm | None:
    timed = [(number, r["seconds_round"]) for number, r in enumerate(rounds, 1) if "seconds_round" in r]
    slow = [
        (number, seconds, usual)
        for index, (number, seconds) in enumerate(timed)
        if index >= TIMED_BEFORE and seconds > TIMES_MEDIAN * (usual := median(s for _, s in timed[:index]))
    ]
    listed = ", ".join(f"round {number} ({seconds:.0f} s, usually {usual:.0f} s)" for number, seconds, usual in slow)
    return _alarm("slow_round", f"More than three times slower than usual: {listed}", [number for number, *_ in slow])


def _reward_up_quiz_down(rounds: Sequence[Figures], quizzes: Quizzes) -> Alarm | None:
    """Compare the last quiz with the best earlier one. Agresti and Coull's adjusted shares allow for small quizzes."""
    counts = {number: graded for number, graded in quizzes.items() if graded[1]}
    share = {number: solved / n for number, (solved, n) in counts.items()}
    last = max(counts, default=0)
    best = max((number for number in counts if number < last), key=share.__getitem__, default=None)
    if best is None:
        return None
    adjusted = [((solved + 1) / (n + 2), n + 2) for solved, n in (counts[best], counts[last])]
    error = math.sqrt(sum(p * (1 - p) / n for p, n in adjusted))
    before, after = _reward(rounds, best), _reward(rounds, last)
    if share[best] - share[last] <= QUIZ_ERRORS * error or not after - before > REWARD_RISE:
        return None
    fall = f"from {percent(share[best], 0)} to {percent(share[last], 0)}"
    sentence = (
        f"The quiz fell {fall} between rounds {best} and {last} while the reward rose from {before:.2f} "
        f"to {after:.2f}: it pays for something other than right answers"
    )
    return _alarm("reward_up_quiz_down", sentence, severe=[last])


CHECKS: tuple[Callable[[Sequence[Figures]], Alarm | None], ...] = (
    *(_no_signal, _skipped_updates, _non_finite_steps, _graders_failing, _mismatch),
    *(_length_collapse, _length_explosion, _entropy_collapse, _slow_round),
)


def _alarm(name: str, sentence: str, mild: Sequence[int] = (), severe: Sequence[int] = ()) -> Alarm | None:
    numbers = [*mild, *severe]
    return Alarm(name, bool(severe), f"{sentence}.", max(numbers)) if numbers else None


def _where(rounds: Sequence[Figures], holds: Callable[[Figures], bool]) -> list[int]:
    return [number for number, figures in enumerate(rounds, 1) if holds(figures)]


def _listed(numbers: Sequence[int]) -> str:
    return f"round{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _completions(figures: Figures) -> float:
    """Return how many of the round's completions have a verdict."""
    return sum(n for name, n in figures.items() if name.startswith("verdicts/") and name.count("/") == 1)


def _mastered(figures: Figures) -> bool:
    return figures.get("verdicts/correct", 0) > MASTERED * (_completions(figures) - figures.get("verdicts/judged", 0))


def _reward(rounds: Sequence[Figures], number: int) -> float:
    """Return the mean reward of the `WINDOW` rounds that end with round `number`, or NaN if they have no rewards."""
    recent = [r["reward"] for r in rounds[max(0, number - WINDOW) : number] if "reward" in r]
    return fmean(recent) if recent else math.nan


def _by_benchmark(rounds: Sequence[Figures]) -> str:
    """Return how often the grader failed, by benchmark: ` (mbpp 3, gsm8k 1)`, or an empty string if it never failed."""
    failed: Counter[str] = Counter()
    for name, number in (figure for figures in rounds for figure in figures.items()):
        if fnmatch(name, f"verdicts/*/{FAILED}"):
            failed[name.split("/")[1]] += int(number)
    counts = [f"{benchmark} {number}" for benchmark, number in failed.most_common() if number]
    return f" ({', '.join(counts)})" if counts else ""
