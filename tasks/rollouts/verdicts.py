"""Verdict counts by benchmark, in which the owner's prompts appear as one more benchmark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from rewards.verifier import Verdict

FAILED: Verdict = "grader_failed"
JUDGED: Verdict = "judged"  # scored by the learned reward, not by a verifier
GIVEN: Verdict = "given"  # correct, but not written by the student
OTHERS = (JUDGED, GIVEN)
VERDICTS: tuple[Verdict, ...] = tuple(verdict for verdict in get_args(Verdict) if verdict not in OTHERS)

Counts = Mapping[str, Mapping[str, int]]  # by benchmark, then by verdict


def count(judged: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Count (benchmark, verdict) pairs. The result is keyed by benchmark, then by verdict.

    Verdicts that a verifier can give are listed even with a count of 0; `judged` and `given`, only if they occur.
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
    """Format the nonzero counts as one line: `gsm8k: 12 correct, 20 wrong; mbpp: 3 correct, 5 crashed`."""
    return "; ".join(
        f"{name}: "
        + ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in verdicts.items() if number)
        for name, verdicts in counts.items()
    )


def as_metrics(counts: Counts) -> dict[str, int]:
    """Return the counts as flat metrics, named like `verdicts/gsm8k/correct`."""
    return {
        f"verdicts/{name}/{verdict}": number
        for name, verdicts in counts.items()
        for verdict, number in verdicts.items()
    }
