"""The vault: problems that decide nothing, on which the serving model is compared with the first student.

The exam that chooses champions night after night overestimates them; the vault chooses none, so it does not.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conf.sections.exam import ExamConfig
from tasks.evaluation.statistics import compare, mcnemar, signed
from tasks.monitoring.alarms import Alarm
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, read_table

LEVEL = 0.025  # one-sided, like one end of a 95 % interval


@stage()
def vault(folder: Path, *, ancestor: Artifact, serving: Artifact, exam: ExamConfig, seed: int) -> None:
    """Compare the serving model with the oldest ancestor on the vault's problems of each part of the exam.

    Writes `vault.json`: the Comparison by part. A benchmark without problems for the vault is left out.
    """
    before, after = (
        read_table(artifact.folder / "evaluations.parquet", EVALUATIONS) for artifact in (ancestor, serving)
    )
    comparisons = {
        part.name: dataclasses.asdict(
            compare(
                part.name,
                before[before.benchmark == part.name],
                after[after.benchmark == part.name],
                samples=exam.bootstrap_samples,
                seed=seed,
            )
        )
        for part in exam.vault_parts
        if (before.benchmark == part.name).any()
    }
    (folder / "vault.json").write_text(json.dumps(comparisons, indent=1))


def is_worse(high: float, gained: int, lost: int) -> bool:
    """Return whether a model got worse: the difference's whole 95 % interval (`high`: its upper end) is below zero, and
    the exact one-sided test agrees, as the bootstrap's interval is too narrow where few answers flipped.
    """
    return high < 0 and mcnemar(lost, gained) <= LEVEL


def vault_alarms(comparisons: Mapping[str, Mapping[str, Any]], back: str) -> list[Alarm]:
    """Return an alarm where the serving model is worse than the first student. `back`: the command to go back."""
    worse = [
        f"{signed(part['difference'])} on {name} (95 % interval {signed(part['low'])} to {signed(part['high'])}, "
        f"{part['n']} problems)"
        for name, part in comparisons.items()
        if is_worse(part["high"], part["gained"], part["lost"])
    ]
    if not worse:
        return []
    sentence = f"The serving model is worse than the first student on the vault: {', '.join(worse)}. Go back: {back}"
    return [Alarm("vault_fell", False, sentence)]
