"""The vault: exam problems that decide nothing, on which whoever serves is held against the first student.

Night after night the same exam chooses who stays, so that its numbers flatter whom it chose. The vault chose nobody.
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

LEVEL = 0.025  # one-sided, as the end of a 95 % interval is


@stage()
def vault(folder: Path, *, ancestor: Artifact, serving: Artifact, exam: ExamConfig, seed: int) -> None:
    """Compares who serves from now on with the oldest ancestor, on the vault's part of each part of the exam.

    Writes `vault.json`: by part, its Comparison. A part whose benchmark has no problems left for it is not there.
    """
    before, after = (read_table(sat.folder / "evaluations.parquet", EVALUATIONS) for sat in (ancestor, serving))
    found = {
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
    (folder / "vault.json").write_text(json.dumps(found, indent=1))


def fallen(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The parts on which who serves is worse."""
    return [name for name, one in found.items() if is_worse(one["high"], one["gained"], one["lost"])]


def is_worse(high: float, gained: int, lost: int) -> bool:
    """Whether the whole 95 % interval of the difference (`high`: its upper end) lies below zero, and the exact
    one-sided test agrees: of a few answers that flipped the bootstrap's interval is too narrow.
    """
    return high < 0 and mcnemar(lost, gained) <= LEVEL


def vault_alarms(found: Mapping[str, Mapping[str, Any]], back: str) -> list[Alarm]:
    """An alarm where who serves has become worse than the first student. `back`: the command to go back."""
    if not (parts := fallen(found)):
        return []
    told = ", ".join(
        f"{signed(found[name]['difference'])} on {name} (95 % interval {signed(found[name]['low'])} to "
        f"{signed(found[name]['high'])}, {found[name]['n']} problems)"
        for name in parts
    )
    sentence = f"Who serves is worse than the first student on problems that never decided: {told}. Go back: {back}"
    return [Alarm("vault_fell", False, sentence)]
