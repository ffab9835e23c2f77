"""Counts of verdicts by benchmark; the owner's prompts count as one more benchmark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from rewards.verifier import Verdict

FAILED: Verdict = "grader_failed"
JUDGED: Verdict = "judged"  # by the learned reward: no verifier's verdict
GIVEN: Verdict = "given"  # right, but not the student's
OTHERS = (JUDGED, GIVEN)
VERDICTS: tuple[Verdict, ...] = tuple(verdict for verdict in get_args(Verdict) if verdict not in OTHERS)

Counts = Mapping[str, Mapping[str, int]]  # by benchmark, then by verdict


def count(judged: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Count pairs of benchmark and verdict.

    Every verdict on a student's answer has a number, possibly 0; `judged` and `given` only where they occur.
    """
    numbers = Counter(judged)
    return {
        name: {
            verdict: numbers[name, verdict]
            for verdict in (*VERDICTS, *OTHERS)
            if verdict in VERDICTS or numbers[name, verdict]
        }
        for name in sorted({benchmark for benchmark, _ in numbers})
    }


def describe(counts: Counts) -> str:
    """Return the counts in one line: `gsm8k: 12 correct, 20 wrong; mbpp: 3 correct, 5 crashed`."""
    return "; ".join(
        f"{name}: "
        + ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in verdicts.items() if number)
        for name, verdicts in counts.items()
    )


def as_metrics(counts: Counts) -> dict[str, int]:
    """Return the counts by flat names: `verdicts/gsm8k/correct`."""
    return {
        f"verdicts/{name}/{verdict}": number
        for name, verdicts in counts.items()
        for verdict, number in verdicts.items()
    }
