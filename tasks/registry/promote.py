"""Promotion: register the evaluated checkpoints as model versions, and let the exam's winner serve by day."""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.storage.durable import read_json, write_atomically
from conf.storage.home import Home
from conf.storage.locks import alias_lock
from models.hf.checkpoint import parent_of, verify
from tasks.monitoring.tracking import UNREACHABLE, Tracking, metric_name
from tasks.registry.mlflow_registry import DAYTIME, REWARD_MODEL, Registry, Version
from tasks.reward_model.fit import figures
from tasks.stage import Artifact, committed, failed_with

OUTCOME = "promotion.json"  # in the night's folder: written once the promotion is carried out
NO_PROMOTE = "no_promote"  # in the night's folder: its presence means that no alias may move


@task(
    name="promote",
    task_run_name="promote",
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=failed_with(*UNREACHABLE),  # a damaged checkpoint stays damaged
    cache_policy=NO_CACHE,
)
def promote(
    decision: Artifact, checkpoints: Mapping[str, Path], home: Home, tracking: Tracking, model: str
) -> dict[str, Any]:
    """Register champion and candidate with their accuracies, and move the aliases as the decision says.

    If the night has fitted a reward model that serves, it is registered too. A night with `--no-promote` moves no
    alias. If the champion was replaced during the night, the candidate is not promoted: the exam did not compare it
    with the new champion.
    The task is idempotent: it can be killed at any point and run again, even if the owner has moved an alias meanwhile.

    `checkpoints`: by role. Returns the decision as carried out, plus the digest of the checkpoint that now serves
    (`serving`) and the owner's moves of the alias so far (`by_hand`). Raises DamagedCheckpointError, before any alias
    moves, if a checkpoint is damaged, and MlflowException if the registry still does not answer after two retries.
    """
    night, registry = decision.folder.parent, Registry(tracking.client, model)
    if (carried_out := read_json(night / OUTCOME)) is None:
        decided = decision.read_json("decision.json")
        carried_out = _register_and_move(decided, checkpoints, night, home, tracking, registry)
        write_atomically(night / OUTCOME, json.dumps(carried_out))
    serving, by_hand = registry.named(DAYTIME), [dataclasses.asdict(move) for move in registry.moves() if move.by_hand]
    return carried_out | {"serving": serving.digest if serving else None, "by_hand": by_hand}


def _register_and_move(
    decision: dict[str, Any],
    checkpoints: Mapping[str, Path],
    night: Path,
    home: Home,
    tracking: Tracking,
    registry: Registry,
) -> dict[str, Any]:
    for checkpoint in checkpoints.values():
        verify(checkpoint)
    versions = {}
    for role, checkpoint in checkpoints.items():
        exams = intervals_of(decision, role)
        tags = {
            "role": role,
            "night": night.name,
            "parent": parent_of(checkpoint) or "",
            "accuracy": f"{exams[decision['target']]['accuracy']:.4f}",
            "problems": str(exams[decision["target"]]["n"]),
        }
        metrics = {metric_name(f"exam/{part}"): interval["accuracy"] for part, interval in exams.items()}
        versions[role] = registry.register(checkpoint, tracking.run_id, tracking.experiment_id, tags, metrics)
    _register_reward_model(night, home, tracking, registry.reward_models)
    with alias_lock(home):
        serving, candidate = registry.named(DAYTIME), versions["candidate"]
        if (night / NO_PROMOTE).exists() and (serving is None or serving.version != candidate.version):
            return _withhold(decision, candidate, night / "config.yaml")
        return _move_aliases(decision, versions, registry, f"night {night.name}")


def _register_reward_model(night: Path, home: Home, tracking: Tracking, registry: Registry) -> None:
    fitted = committed(night / "fit_reward_model")
    if fitted is not None and (outcome := fitted.read_json("outcome.json"))["serves"]:
        checkpoint = home.checkpoints / outcome["checkpoint"]
        verify(checkpoint)
        tags = {"role": REWARD_MODEL, "night": night.name, "parent": parent_of(checkpoint) or ""}
        registry.register(checkpoint, tracking.run_id, tracking.experiment_id, tags, figures(outcome))


def _move_aliases(
    decision: dict[str, Any], versions: Mapping[str, Version], registry: Registry, by: str
) -> dict[str, Any]:
    registry.finish_alias_move()
    if any((move.version, move.by) == (versions["candidate"].version, by) for move in registry.moves()):
        return decision  # the night was killed after this move; moves that the owner made since then stand
    serving = registry.named(DAYTIME)
    if serving is None:
        registry.promote(versions["champion"].version, by)
    elif decision["promote"] and serving.version not in (versions["champion"].version, versions["candidate"].version):
        overtaken = (
            f"Version {serving.version} was promoted after this exam's champion was chosen, so it stays; "
            "another night may beat it."
        )
        return decision | {"promote": False, "reasons": [*decision["reasons"], overtaken]}
    if decision["promote"]:
        registry.promote(versions["candidate"].version, by)
    return decision


def _withhold(decision: dict[str, Any], candidate: Version, config: Path) -> dict[str, Any]:
    reason = "--no-promote: no alias was moved."
    if decision["promote"]:
        command = shlex.join(["nightschool", "promote", candidate.version, "--config", str(config)])
        reason = f"{reason} The candidate has earned its promotion: `{command}`."
        decision = decision | {"withheld": command}
    return decision | {"promote": False, "reasons": [*decision["reasons"], reason]}


def intervals_of(decision: Mapping[str, Any], role: str) -> dict[str, dict[str, float]]:
    """Return, for each exam part that a model took, its accuracy, its 95 % interval and the number of answers (`n`).

    `role`: champion, candidate or distilled. A distilled model takes only the target part (see `exam.after_lessons`).
    """
    if role == "distilled":
        return {decision["target"]: decision["growth"]["before"]} if decision["growth"] else {}
    side = "before" if role == "champion" else "after"
    return {part: comparison[side] for part, comparison in decision["comparisons"]["candidate"].items()}
