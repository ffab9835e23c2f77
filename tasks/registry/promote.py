"""Promotion: the three that sat the exam become registered versions; the winner serves by day."""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.storage.durable import write_atomically
from conf.storage.home import Home
from conf.storage.locks import alias_lock
from models.checkpoint import parent_of, verify
from tasks.monitoring.prefect_artifacts import show_text
from tasks.registry.mlflow_registry import DAYTIME, Registry, Version
from tasks.stage import Artifact
from tasks.tracking import Tracking

OUTCOME = "promotion.json"  # in the night's folder: written once the aliases stand
DRY_RUN = "dry_run"  # in the night's folder: nothing is to be moved


def registry_failed(task: Any, run: Any, state: Any) -> bool:
    """Prefect's question whether to run a failed promotion again: a damaged checkpoint will not heal."""
    return isinstance(state.data, MlflowException) or isinstance(
        getattr(state.data, "exception", None), MlflowException
    )


@task(
    name="promote",
    task_run_name="promote",
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=registry_failed,
    cache_policy=NO_CACHE,
)
def promote(
    decision: Artifact, sitters: Mapping[str, Path], home: Home, tracking: Tracking, model: str
) -> dict[str, Any]:
    """Registers champion, distilled and candidate with their accuracies, and moves the aliases if so decided.

    `sitters`: the checkpoint behind each name. A registry that does not answer is asked again after 10 and 60 seconds.
    A dry run moves nothing. Returns the decision as it was carried out, with the digest that is `serving` now, and all
    that was moved `by_hand` up to now. Where another night has promoted somebody else meanwhile, this one's exam says
    nothing about that champion, which stays. Doing it twice changes nothing, whatever happens to the aliases in
    between, and wherever the first time was killed. Raises DamagedCheckpointError before an alias names what was
    damaged, and MlflowException where the registry does not answer.
    """
    night, registry = decision.folder.parent, Registry(tracking.client, model)
    outcome = night / OUTCOME
    if outcome.exists():
        carried_out = json.loads(outcome.read_text())
    else:
        carried_out = _once(decision.read_json("decision.json"), sitters, night, home, tracking, registry)
        write_atomically(outcome, json.dumps(carried_out))
    serving, by_hand = registry.named(DAYTIME), [dataclasses.asdict(move) for move in registry.moves() if move.by_hand]
    return carried_out | {"serving": serving.digest if serving else None, "by_hand": by_hand}


def show_who_serves(registry: Registry) -> None:
    """Shows on Prefect's pages since when which version serves by day, and by whose doing, the newest first."""
    rows = [f"| {move.at} | {move.version} | {move.by} |" for move in reversed(registry.moves())]
    table = "\n".join(["| since (UTC) | version | by |", "|:--|--:|:--|", *rows])
    show_text(DAYTIME, table, f"Who serves by day: {registry.model}")


def _once(
    found: dict[str, Any],
    sitters: Mapping[str, Path],
    night: Path,
    home: Home,
    tracking: Tracking,
    registry: Registry,
) -> dict[str, Any]:
    for checkpoint in sitters.values():
        verify(checkpoint)
    versions = {}
    for who, checkpoint in sitters.items():
        accuracies = accuracy_of(found, who)
        tags = {
            "role": who,
            "night": night.name,
            "parent": parent_of(checkpoint) or "",
            "accuracy": f"{accuracies[found['target']]:.4f}",
        }
        metrics = {f"exam/{part}": accuracy for part, accuracy in accuracies.items()}
        versions[who] = registry.register(checkpoint, tracking.run_id, tracking.experiment_id, tags, metrics)
    with alias_lock(home):
        serving, candidate = registry.named(DAYTIME), versions["candidate"]
        if (night / DRY_RUN).exists() and (serving is None or serving.version != candidate.version):
            return _withheld(found, candidate, night / "config.yaml")
        return _carry_out(found, versions, registry, f"night {night.name}")


def _carry_out(found: dict[str, Any], versions: Mapping[str, Version], registry: Registry, by: str) -> dict[str, Any]:
    registry.settle()
    if any((move.version, move.by) == (versions["candidate"].version, by) for move in registry.moves()):
        return found  # the night was killed right after it; what its owner has moved since stands
    serving = registry.named(DAYTIME)
    if serving is None:
        registry.promote(versions["champion"].version, by)
    elif found["promote"] and serving.version not in (versions["champion"].version, versions["candidate"].version):
        overtaken = (
            f"The champion of this exam does not serve any more, since version {serving.version} was promoted "
            "meanwhile: that one stays, and another night may beat it."
        )
        return found | {"promote": False, "reasons": [*found["reasons"], overtaken]}
    if found["promote"]:
        registry.promote(versions["candidate"].version, by)
    return found


def _withheld(found: dict[str, Any], candidate: Version, config: Path) -> dict[str, Any]:
    told = "A dry run: no alias was moved."
    if found["promote"]:
        command = shlex.join(["nightschool", "promote", candidate.version, "--config", str(config)])
        told = f"{told} The candidate has earned its promotion, which `{command}` carries out."
        found = found | {"withheld": command}
    return found | {"promote": False, "reasons": [*found["reasons"], told]}


def accuracy_of(decision: Mapping[str, Any], who: str) -> dict[str, float]:
    """The accuracy of one of the three on every part of the exam."""
    return {part: interval["accuracy"] for part, interval in intervals_of(decision, who).items()}


def intervals_of(decision: Mapping[str, Any], who: str) -> dict[str, dict[str, float]]:
    """Accuracy, its 95 % interval and n, of one of the three on every part of the exam."""
    side = "before" if who == "champion" else "after"
    source = "candidate" if who == "champion" else who
    return {part: found[side] for part, found in decision["comparisons"][source].items()}
