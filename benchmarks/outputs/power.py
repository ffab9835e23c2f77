"""Mean differences between pairs of runs, and which would have been detected."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.stats import nct, sem, t, ttest_1samp

from tasks.evaluation.statistics import POWER


def detectable_mean(differences: Float[np.ndarray, "n"], alpha: float) -> float | None:
    """Return the smallest true mean that a one-sided t test at `alpha` detects with 80 % power (noncentral t)."""
    if len(differences) < 2 or not differences.any():
        return None
    freedom = len(differences) - 1
    critical = t.isf(alpha, freedom)
    noncentrality: Any = brentq(lambda nc: nct.sf(critical, freedom, nc) - POWER, 0.0, 10 * critical)
    return float(noncentrality * sem(differences))


def mean_difference(differences: Sequence[float], digits: int = 3) -> str:
    """Return the mean of paired differences, with Student's 95 % interval if there are two or more; "–" if none."""
    if not differences:
        return "–"
    shown = f"{statistics.mean(differences):+.{digits}f}"
    if len(differences) < 2:
        return shown
    found: Any = ttest_1samp(differences, 0.0)
    low, high = found.confidence_interval(0.95)
    return f"{shown} [{low:+.{digits}f}, {high:+.{digits}f}]"
