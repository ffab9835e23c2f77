"""Compare two checkpoints by pairing their answers to the same problems."""

from dataclasses import dataclass

import pandas as pd

from tasks.evaluation.statistics import (
    Accuracy,
    are_episodes,
    bootstrap,
    mcnemar,
    outcomes,
    sign_flip,
    student_low,
    tango_low,
)

KEYS = ["problem_id", "sample"]


@dataclass(frozen=True)
class Comparison:
    """A comparison of two checkpoints, `before` and `after`, by their paired answers to one part of the exam.

    `n`, `nulls`: the numbers of graded and ungraded pairs. `gained`, `lost`: how many answers became right or wrong, or
    how many episodes went better or worse. `low`, `high`: the 95 % interval of the `difference`. `guard_low`: its
    one-sided 95 % lower bound.
    """

    name: str
    n: int
    nulls: int
    before: Accuracy
    after: Accuracy
    difference: float
    low: float
    high: float
    gained: int
    lost: int
    p_value: float
    guard_low: float
    before_digest: str
    after_digest: str


def compare(name: str, before: pd.DataFrame, after: pd.DataFrame, *, seed: int) -> Comparison:
    """Compare two checkpoints on the exam part `name`, given each one's rows of the evaluations table.

    A pair with an ungraded answer is dropped and counted in `nulls`. `seed`: for the bootstrap. Raises
    ValueError if the two tables do not have the same problems.
    """
    before, after = (table[table["benchmark"] == name] for table in (before, after))
    first, second = _outcomes(before), _outcomes(after)
    if not first.index.equals(second.index):
        raise ValueError(f"{name}: the two checkpoints answered different problems; evaluate both again")
    graded, counted = first.notna() & second.notna(), not are_episodes(before)
    differences = (second - first)[graded].to_numpy(dtype=float)
    n, gained, lost = len(differences), int((differences > 0).sum()), int((differences < 0).sum())
    low, high = bootstrap(differences, seed=seed)
    return Comparison(
        name=name,
        n=n,
        nulls=len(first) - n,
        before=Accuracy.of_outcomes(first[graded], counted),
        after=Accuracy.of_outcomes(second[graded], counted),
        difference=float(differences.mean()) if n else 0.0,
        low=low,
        high=high,
        gained=gained,
        lost=lost,
        p_value=mcnemar(gained, lost) if counted else sign_flip(differences),
        guard_low=tango_low(gained, lost, n) if counted else student_low(differences),
        before_digest=_digest(before),
        after_digest=_digest(after),
    )


def _outcomes(evaluations: pd.DataFrame) -> pd.Series:
    return evaluations.assign(outcome=outcomes(evaluations)).set_index(KEYS)["outcome"].sort_index()


def _digest(evaluations: pd.DataFrame) -> str:
    return str(evaluations["policy_digest"].iloc[0]) if len(evaluations) else ""
