"""What difference a benchmark would have detected."""

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, sem

from tasks.evaluation.statistics import POWER


def detectable_mean(differences: Float[np.ndarray, "n"], alpha: float) -> float | None:
    """Return the smallest true mean that a one-sided test at `alpha` detects with 80 % power: (z_α + z_β)·s/√n."""
    if len(differences) < 2 or not differences.any():
        return None
    return float((norm.isf(alpha) + norm.ppf(POWER)) * sem(differences))
