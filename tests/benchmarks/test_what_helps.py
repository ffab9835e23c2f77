"""The ablation's arithmetic by hand, what is run again and what is not, and that each night leaves out what it says."""

import math
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import ttest_rel

from benchmarks.nights.ablations import ALL, PARTS, ROUNDS_ONLY, Run, configured, settings_of
from benchmarks.what_helps import Effect, current, effects, missing

HERE, THERE = "a small machine, 2 cores", "a large machine, 64 cores"


def night(variant: str, seed: int, candidate: float, machine: str = HERE) -> Run:
    return Run(variant, seed, settings_of(variant), 0.02, candidate, 200, variant == ALL, 4.5, machine, "cafe42", {})


RUNS = [
    night(ALL, 1, 0.60),
    night(ALL, 2, 0.50),
    night(ALL, 3, 0.55),
    night("without worked solutions", 1, 0.30),
    night("without worked solutions", 2, 0.30),
    night("without worked solutions", 3, 0.20),
    night("without words", 1, 0.65),
    night("without words", 2, 0.50, THERE),  # nothing there to hold it against
    night(ROUNDS_ONLY, 1, 0.10),
]


def test_effects_are_differences_of_pairs() -> None:
    solutions, words = effects(RUNS)
    assert (solutions.part, words.part) == ("worked solutions", "words")
    assert solutions.differences == pytest.approx((0.30, 0.20, 0.35))
    assert solutions.mean == pytest.approx(0.85 / 3)
    assert solutions.without == pytest.approx(0.8 / 3)
    assert words.differences == pytest.approx((-0.05,))
    assert words.interval is None


def test_the_interval_by_hand_and_by_scipy() -> None:
    """s of 0.1, 0.2, 0.3 is 0.1, and Student's t for 2 degrees of freedom at 97.5 % is 4.3027."""
    interval = Effect("words", (0.1, 0.2, 0.3), 0.0).interval
    assert interval == pytest.approx((0.2 - 4.3027 * 0.1 / math.sqrt(3), 0.2 + 4.3027 * 0.1 / math.sqrt(3)), abs=1e-5)
    one, other = [0.6, 0.5, 0.55, 0.7], [0.3, 0.3, 0.2, 0.65]
    found = Effect("words", tuple(a - b for a, b in zip(one, other, strict=True)), 0.0)
    expected = ttest_rel(one, other).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))


def test_a_night_runs_once_per_machine_commit_and_configuration() -> None:
    wanted = [(ALL, 1), (ALL, 4), ("without words", 1), ("without words", 2)]
    this = RUNS[0].where
    assert missing(wanted, RUNS, this) == [(ALL, 4), ("without words", 2)]
    assert missing(wanted, RUNS, (THERE, *this[1:])) == [(ALL, 1), (ALL, 4), ("without words", 1)]
    assert missing(wanted, RUNS, (HERE, "c0ffee", ())) == wanted
    old = [replace(one, settings="of before") for one in RUNS]
    assert missing(wanted, old, this) == wanted
    assert current([*old, *RUNS]) == RUNS
    assert current([replace(RUNS[0], variant="without what is gone")]) == []


@pytest.mark.parametrize("changes", [{"commit": "c0ffee"}, {"versions": {"torch": "9"}}])
def test_nights_of_different_commits_or_packages_are_no_pair(changes: dict[str, Any]) -> None:
    other = replace(RUNS[3], **changes)
    assert effects([RUNS[0], other]) == []
    assert effects([replace(RUNS[0], **changes), other])[0].differences == pytest.approx((0.30,))


@pytest.mark.parametrize("part", PARTS)
def test_each_night_leaves_out_only_its_part(part: str) -> None:
    own, whole = configured(f"without {part}").model_dump(), configured(ALL).model_dump()
    changed = {key for key in whole if own[key] != whole[key]}
    assert len(changed) == 1
    assert changed <= {"day", "distill", "stages", "preference_learning"}
