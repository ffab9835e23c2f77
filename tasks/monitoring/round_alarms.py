"""Signs in the rounds' figures that a night goes wrong, looked for after every round.

What each means, and what to do about it, stands in docs/watching.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from rewards.learned_reward import OWNER
from tasks.monitoring.alarms import Alarm
from tasks.rollouts.verdicts import FAILED

Figures = Mapping[str, float]  # a round's: the keys of metrics.json
Quizzes = Mapping[int, tuple[int, int]]  # by round: answers that were correct, answers that were graded

LITTLE_SIGNAL = 0.1  # share of useful groups; healthy nights have 0.3 to 0.8
WINDOW = 3  # rounds over which shares and rewards are taken together: one round's jump about
MOST_FAILED = 0.5  # of a round's completions: what is left is no sample of what the student can do
MASKED_LIMIT, MASKED_FAR = 0.01, 0.25  # share of completions outside the band; healthy: none at all
K3_LIMIT = 0.05  # nats a token; a healthy bf16 pair has about 0.001, and 0.01 where |π−μ| is at its 0.05
LENGTH_CHANGED, LENGTH_GONE = 3, 10  # times shorter, or longer, than in round 1
CUT_SHARE, CUT_RISE = 0.5, 0.3  # completions that end at the limit, and how many more than in round 1
ENTROPY_LOW, ENTROPY_KEPT = 0.01, 0.1  # nats a token, and share of the first; a starter stays at 0.1
MASTERED = 0.9  # share of completions that are correct: who solves nearly all may be sure of it
TIMES_MEDIAN, TIMED_BEFORE = 3, 3  # a slow round, and how many rounds tell what is usual
QUIZ_ERRORS = 3  # standard errors by which a quiz must have fallen: the best of several was lucky
REWARD_RISE = 0.02


def round_alarms(rounds: Sequence[Figures], quizzes: Quizzes | None = None) -> list[Alarm]:
    """The alarms over the rounds so far, at most one of each name. A round that took no step has fewer figures."""
    if not rounds:
        return []
    found = [check(rounds) for check in CHECKS] + [_reward_up_quiz_down(rounds, quizzes or {})]
    return [alarm for alarm in found if alarm is not None]


def _no_signal(rounds: Sequence[Figures]) -> Alarm | None:
    recent = rounds[-WINDOW:]
    signal = sum(r["useful_groups"] for r in recent) / sum(r["groups"] for r in recent)  # of all that were sampled
    if signal >= LITTLE_SIGNAL:
        return None
    last = len(rounds)
    return _alarm(
        "no_signal",
        f"Hardly any group had a signal ({signal:.0%}) in rounds {last - len(recent) + 1} to {last}: "
        "the problems are too hard or too easy to learn from",
        [last],
    )


def _skipped_updates(rounds: Sequence[Figures]) -> Alarm | None:
    skipped = _where(rounds, lambda r: r["skipped"] > 0)
    return _alarm("skipped_updates", f"For want of useful groups no step was taken in {_told(skipped)}", skipped)


def _non_finite_steps(rounds: Sequence[Figures]) -> Alarm | None:
    bad = _where(rounds, lambda r: r.get("non_finite_steps", 0) > 0)
    return _alarm("non_finite_steps", f"Steps were not taken, their gradients not being finite, in {_told(bad)}", bad)


def _graders_failing(rounds: Sequence[Figures]) -> Alarm | None:
    def of_verifiers(r: Figures) -> float:  # what the reward model did not judge costs no night
        return r["null_rewards"] - r.get(f"verdicts/{OWNER}/{FAILED}", 0)

    some = _where(rounds, lambda r: r["null_rewards"] > 0)
    most = _where(rounds, lambda r: 0 < MOST_FAILED * _completions(r) < of_verifiers(r))
    failed = sum(r["null_rewards"] for r in rounds)
    return _alarm(
        "graders_failing",
        f"The grader failed on {failed:.0f} completions{_by_benchmark(rounds)}, which were left out, in {_told(some)}",
        some,
        most,
    )


def _mismatch(rounds: Sequence[Figures]) -> Alarm | None:
    def masked(r: Figures) -> float:
        return r.get("masked_share", 0.0)

    some = _where(rounds, lambda r: masked(r) > MASKED_LIMIT or r.get("sampler_k3", 0.0) > K3_LIMIT)
    far = _where(rounds, lambda r: masked(r) > MASKED_FAR)
    worst, k3 = max(map(masked, rounds)), max(r.get("sampler_k3", 0.0) for r in rounds)
    return _alarm(
        "mismatch",
        f"Sampler and trainer disagreed (up to {worst:.1%} of the completions masked, k3 up to {k3:.2g} nats) "
        f"in {_told(some)}",
        some,
        far,
    )


def _length_collapse(rounds: Sequence[Figures]) -> Alarm | None:
    first = rounds[0].get("completion_length", 0.0)

    def shorter_than(share: float) -> list[int]:
        return _where(rounds, lambda r: r.get("completion_length", math.inf) < share * first)

    some, gone = shorter_than(1 / LENGTH_CHANGED), shorter_than(1 / LENGTH_GONE)
    return _alarm(
        "length_collapse",
        f"Completions shrank from {first:.0f} tokens to less than a third in {_told(some)}",
        some,
        gone,
    )


def _length_explosion(rounds: Sequence[Figures]) -> Alarm | None:
    first, cut = rounds[0].get("completion_length", math.inf), rounds[0].get("truncated_share", 0.0)
    at_limit = _where(rounds, lambda r: r.get("truncated_share", 0.0) > max(CUT_SHARE, cut + CUT_RISE))
    some = _where(rounds, lambda r: r.get("completion_length", 0.0) > LENGTH_CHANGED * first)
    last = max(some + at_limit, default=1)
    tokens, share = (rounds[last - 1].get(name, 0.0) for name in ("completion_length", "truncated_share"))
    sentence = f"Completions grew from {first:.0f} to {tokens:.0f} tokens, and {share:.0%} were cut, by round {last}"
    return _alarm("length_explosion", sentence, some, at_limit)


def _entropy_collapse(rounds: Sequence[Figures]) -> Alarm | None:
    first = next((r["entropy"] for r in rounds if "entropy" in r), 0.0)
    limit = min(ENTROPY_LOW, ENTROPY_KEPT * first)
    collapsed = _where(rounds, lambda r: r.get("entropy", math.inf) < limit and not _mastered(r))
    return _alarm(
        "entropy_collapse",
        f"The student says nearly always the same: its entropy fell from {first:.2g} nats to below {limit:.2g} "
        f"in {_told(collapsed)}",
        severe=collapsed,
    )


def _slow_round(rounds: Sequence[Figures]) -> Alarm | None:
    timed = [(number, r["seconds_round"]) for number, r in enumerate(rounds, 1) if "seconds_round" in r]
    slow = [
        (number, seconds, usual)
        for place, (number, seconds) in enumerate(timed)
        if place >= TIMED_BEFORE and seconds > TIMES_MEDIAN * (usual := median(s for _, s in timed[:place]))
    ]
    told = "; ".join(f"round {number}: {seconds:.0f} s, usual {usual:.0f} s" for number, seconds, usual in slow)
    return _alarm("slow_round", f"A round took more than three times as long as usual ({told})", [n for n, *_ in slow])


def _reward_up_quiz_down(rounds: Sequence[Figures], quizzes: Quizzes) -> Alarm | None:
    """The last quiz against the best before it. Agresti and Coull's shares keep small quizzes from being certain."""
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
    sentence = (
        f"The quiz fell from {share[best]:.2f} to {share[last]:.2f} between rounds {best} and {last} while the reward "
        f"rose from {before:.2f} to {after:.2f}: what is rewarded is not what is asked"
    )
    return _alarm("reward_up_quiz_down", sentence, severe=[last])


CHECKS: tuple[Callable[[Sequence[Figures]], Alarm | None], ...] = (
    *(_no_signal, _skipped_updates, _non_finite_steps, _graders_failing, _mismatch),
    *(_length_collapse, _length_explosion, _entropy_collapse, _slow_round),
)


def _alarm(name: str, sentence: str, mild: Sequence[int] = (), severe: Sequence[int] = ()) -> Alarm | None:
    """The alarm over the rounds with these numbers; None where there are none."""
    numbers = [*mild, *severe]
    return Alarm(name, bool(severe), f"{sentence}.", max(numbers)) if numbers else None


def _where(rounds: Sequence[Figures], holds: Callable[[Figures], bool]) -> list[int]:
    return [number for number, figures in enumerate(rounds, 1) if holds(figures)]


def _told(numbers: Sequence[int]) -> str:
    return f"round{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _completions(figures: Figures) -> float:
    """How many completions of the round have a verdict."""
    return sum(n for name, n in figures.items() if name.startswith("verdicts/") and name.count("/") == 1)


def _mastered(figures: Figures) -> bool:
    return figures.get("verdicts/correct", 0) > MASTERED * (_completions(figures) - figures.get("verdicts/judged", 0))


def _reward(rounds: Sequence[Figures], number: int) -> float:
    """The mean reward of the rounds up to this one; NaN where none has any."""
    recent = [r["reward"] for r in rounds[max(0, number - WINDOW) : number] if "reward" in r]
    return fmean(recent) if recent else math.nan


def _by_benchmark(rounds: Sequence[Figures]) -> str:
    """The failures of each benchmark's grader, in brackets; nothing where the figures do not tell."""
    failed: Counter[str] = Counter()
    for figures in rounds:
        for name, number in figures.items():
            if name.startswith("verdicts/") and name.endswith(f"/{FAILED}") and name.count("/") == 2:
                failed[name.split("/")[1]] += int(number)
    told = [f"{benchmark} {number}" for benchmark, number in failed.most_common() if number]
    return f" ({', '.join(told)})" if told else ""
