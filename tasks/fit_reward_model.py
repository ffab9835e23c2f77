"""The reward model's place in the night: what becomes of the owner's picks."""

import json
from pathlib import Path

import pandas as pd

from tasks.stage import Artifact, stage
from tasks.tables import PREFERENCES, read_table


@stage(tags=["trainer"])
def fit_reward_model(folder: Path, *, day: Artifact) -> None:
    """Notes that no reward model serves tonight, and why; the picks stay frozen in the night's folder."""
    picks: pd.DataFrame = read_table(day.folder / "preferences.parquet", PREFERENCES)
    reason = "this version scores with verifiable rewards only; the picks are kept for the nights to come"
    (folder / "outcome.json").write_text(json.dumps({"serves": False, "reason": reason, "picks": len(picks)}))
