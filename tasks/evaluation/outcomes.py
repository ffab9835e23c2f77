"""What an exam counts: 1 for a correct answer and 0 for a wrong one, and of an episode what it achieved."""

import pandas as pd


def outcomes(evaluations: pd.DataFrame) -> pd.Series:
    """Return a number for each row of the evaluations table; NaN where it could not be graded."""
    return evaluations["value"].astype(float).fillna(evaluations["correct"].astype(float))


def are_values(evaluations: pd.DataFrame) -> bool:
    """Return whether these are episodes, whose outcomes are more than right and wrong."""
    return bool(evaluations["value"].notna().any())
