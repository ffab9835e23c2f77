"""What the report says of the journal itself: the lines that were refused, and the picks of unknown checkpoints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.report_evidence import read_json, read_table
from tasks.stage import MANIFEST

FIRST = 5  # refused lines that are shown
LONGEST = 200  # characters of a reason: it may repeat what stands in the line


def journal_faults(night: Path) -> dict[str, Any]:
    """`refused`: how many lines the night's freeze refused, and `first`, the first of them with file, line and reason;
    `unknown_policies`: how many of its new picks are of a checkpoint that this home has never had.
    """
    table = read_table(night / "freeze_journal", "quarantine")
    refused: list[Any] = [] if table is None else table.to_dict("records")
    figures = (read_json(night / "freeze_journal", MANIFEST) or {}).get("figures", {})
    return {
        "refused": len(refused),
        "first": [row | {"reason": _cut(row["reason"])} for row in refused[:FIRST]],
        "unknown_policies": int(figures.get("unknown_policies", 0)),
    }


def fault_sentences(faults: Mapping[str, Any]) -> list[str]:
    """How many there are of each, as far as there are any."""
    told = {
        "refused": "Lines of the journal that were refused, and taught nothing",
        "unknown_policies": "New picks of a checkpoint that this home has never had, which count all the same",
    }
    return [f"{what}: {faults[name]}." for name, what in told.items() if faults[name]]


def _cut(reason: str) -> str:
    return reason if len(reason) <= LONGEST else f"{reason[:LONGEST]}…"
