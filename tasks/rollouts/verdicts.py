"""How often each verdict was given, benchmark by benchmark; the owner's own prompts count as one more."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from rewards.verifier import Verdict

FAILED: Verdict = "grader_failed"
JUDGED: Verdict = "judged"  # by the learned reward: no verifier's verdict
VERDICTS: tuple[Verdict, ...] = tuple(verdict for verdict in get_args(Verdict) if verdict != JUDGED)

Counts = Mapping[str, Mapping[str, int]]  # by benchmark, then by verdict


def count(judged: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Pairs of benchmark and verdict, counted. Every verdict that a verifier gives has its number, 0 where it was never
    given; `judged` has one only where it was.
    """
    found = Counter(judged)
    names = sorted({benchmark for benchmark, _ in found})
    counted = {name: {verdict: found[name, verdict] for verdict in VERDICTS} for name in names}
    for name in names:
        if found[name, JUDGED]:
            counted[name][JUDGED] = found[name, JUDGED]
    return counted


def told(counts: Counts) -> str:
    """The counts in one line: `gsm8k: 12 correct, 20 wrong; mbpp: 3 correct, 5 crashed`."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in own.items() if number)
        for name, own in counts.items()
    )


def as_metrics(counts: Counts) -> dict[str, int]:
    """The counts as flat names: `verdicts/gsm8k/correct`."""
    return {f"verdicts/{name}/{verdict}": number for name, own in counts.items() for verdict, number in own.items()}
