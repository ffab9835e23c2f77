"""What an owner must not overlook: signs in a night's figures that it went wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tasks.verdicts import FAILED

LITTLE_SIGNAL = 0.1
MASKED_LIMIT = 0.01
FORGOTTEN_FROM, FORGOTTEN_TO = 0.15, 0.02
ENOUGH_TRIES = 8


def round_alarms(rounds: Sequence[Mapping[str, float]]) -> list[str]:
    """Alarms over the rounds' figures (the keys of metrics.json), each a sentence."""
    if not rounds:
        return []
    found = []
    signal = sum(r["useful_groups"] for r in rounds) / sum(r["groups"] for r in rounds)  # of all that were sampled
    if signal < LITTLE_SIGNAL:
        found.append(
            f"Hardly any group had a signal ({signal:.0%}): the problems are too hard or too easy to learn from."
        )
    if skipped := sum(r["skipped"] for r in rounds):
        found.append(f"{skipped:.0f} of {len(rounds)} updates were skipped for want of useful groups.")
    if failed := sum(r["null_rewards"] for r in rounds):
        found.append(f"The grader failed on {failed:.0f} completions{_by_benchmark(rounds)}; they were left out.")
    masked = [number for number, r in enumerate(rounds, 1) if r.get("masked_share", 0) > MASKED_LIMIT]
    if masked:
        found.append(f"Sampler and trainer disagreed on more than 1 % of the completions in rounds {_listed(masked)}.")
    bad = [number for number, r in enumerate(rounds, 1) if r.get("non_finite_steps", 0)]
    if bad:
        found.append(f"Gradients were not finite in rounds {_listed(bad)}; those steps were not taken.")
    return found


def forgotten_kinds(history: Sequence[Mapping[str, tuple[float, float]]]) -> list[str]:
    """Kinds of problems that the student never learned, or could solve during the night and then no more.

    `history`: for each round, by kind, the (fading) number of tries and of those solved.
    """
    best: dict[str, float] = {}
    for rates in history:
        for kind, (tried, solved) in rates.items():
            if tried >= ENOUGH_TRIES:
                best[kind] = max(best.get(kind, 0.0), solved / tried)
    last = history[-1] if history else {}
    never = [
        f"{kind} was practised to the end of the night and hardly ever solved: worked solutions of it would help."
        for kind, (tried, _) in sorted(last.items())
        if tried >= ENOUGH_TRIES and all(r[kind][1] <= FORGOTTEN_TO * r[kind][0] for r in history if kind in r)
    ]
    return never + [
        f"{kind} was solved in {best[kind]:.0%} of the tries during the night and in {solved / tried:.0%} at its end."
        for kind, (tried, solved) in sorted(last.items())
        if tried >= ENOUGH_TRIES and best.get(kind, 0.0) >= FORGOTTEN_FROM and solved / tried <= FORGOTTEN_TO
    ]


def exam_alarms(ungraded: Mapping[str, tuple[int, int]]) -> list[str]:
    """Alarms over the exam. `ungraded`: by part, how many answers the grader failed on, and how many there are."""
    return [
        f"The grader failed on {failed} of the {answers} exam answers of {part}; they were left out."
        for part, (failed, answers) in ungraded.items()
        if failed
    ]


def _by_benchmark(rounds: Sequence[Mapping[str, float]]) -> str:
    """The failures of each benchmark's grader, in brackets; nothing where the figures do not tell."""
    failed: Counter[str] = Counter()
    for figures in rounds:
        for name, number in figures.items():
            if name.startswith("verdicts/") and name.endswith(f"/{FAILED}") and name.count("/") == 2:
                failed[name.split("/")[1]] += int(number)
    told = [f"{benchmark} {number}" for benchmark, number in failed.most_common() if number]
    return f" ({', '.join(told)})" if told else ""


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
