"""Dataset items that cannot be used, because their own truth cannot be read."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from rewards.verifier import Benchmark, Split

Item = TypeVar("Item")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Excluded:
    """An item that is left out, and why."""

    problem_id: str
    reason: str


def usable(benchmark: Benchmark, split: Split, items: Iterable[Item | Excluded]) -> list[Item]:
    """Return the items of a split without the excluded ones, which go to `benchmark.excluded` and to the log."""
    kept: list[Item] = []
    excluded: list[str] = []
    for item in items:
        if isinstance(item, Excluded):
            log.warning("%s is excluded: %s", item.problem_id, item.reason)
            excluded.append(item.problem_id)
        else:
            kept.append(item)
    benchmark.excluded = {**benchmark.excluded, split: excluded}
    if excluded:
        total = len(kept) + len(excluded)
        log.warning("%s: %d of %d %s problems are excluded", benchmark.name, len(excluded), total, split)
    return kept
