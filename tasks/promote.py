"""Promotion: the three that sat the exam become registered versions; the winner serves by day."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from models.checkpoint import parent_of
from tasks.registry import DAYTIME, Registry
from tasks.stage import Artifact
from tasks.tracking import Tracking


@task(name="promote", tags=["registry"], retries=2, retry_delay_seconds=5, cache_policy=NO_CACHE)
def promote(decision: Artifact, sitters: Mapping[str, Path], night: str, tracking: Tracking, model: str) -> None:
    """Registers champion, distilled and candidate with their accuracies, and moves the aliases if so decided.

    `sitters`: the checkpoint behind each name. Doing it twice changes nothing.
    """
    found = decision.read_json("decision.json")
    registry = Registry(tracking.client, model)
    versions = {}
    for who, checkpoint in sitters.items():
        accuracies = accuracy_of(found, who)
        tags = {
            "role": who,
            "night": night,
            "parent": parent_of(checkpoint) or "",
            "accuracy": f"{accuracies[found['target']]:.4f}",
        }
        metrics = {f"exam/{part}": accuracy for part, accuracy in accuracies.items()}
        versions[who] = registry.register(checkpoint, tracking.run_id, tracking.experiment_id, tags, metrics)
    if registry.named(DAYTIME) is None:
        registry.promote(versions["champion"].version)
    if found["promote"]:
        registry.promote(versions["candidate"].version)


def accuracy_of(decision: Mapping[str, Any], who: str) -> dict[str, float]:
    """The accuracy of one of the three on every part of the exam."""
    return {part: interval["accuracy"] for part, interval in intervals_of(decision, who).items()}


def intervals_of(decision: Mapping[str, Any], who: str) -> dict[str, dict[str, float]]:
    """Accuracy, its 95 % interval and n, of one of the three on every part of the exam."""
    side = "before" if who == "champion" else "after"
    source = "candidate" if who == "champion" else who
    return {part: found[side] for part, found in decision["comparisons"][source].items()}


def read_decision(night: Path) -> dict[str, Any]:
    """The decision of a night."""
    return json.loads((night / "decide" / "decision.json").read_text())
