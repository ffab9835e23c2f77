"""What must hold of a night that was killed and gone on with: nothing lost, nothing repeated, nobody left behind."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from conf.storage.home import Home
from models.checkpoint import is_intact
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, Registry
from tasks.stage import MANIFEST, committed
from tests.chaos.school import DATE, NAME
from tests.models.support.tiny import plain_model

MOVED = f"/{MANIFEST}"
BY_THE_CLOCK = ("slow_round", "disk_short")  # alarms that may differ from run to run
TABLES = ("rollouts.parquet", "advantages.parquet", "evaluations.parquet", "prompts.parquet")


@dataclass
class Verdict:
    """What was found wrong, each in a sentence."""

    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "; ".join([*self.lost, *self.repeated, *self.orphans]) or "nothing"


def committed_stages(home: Home) -> dict[str, str]:
    """The stages that stand, their files undamaged: by place, with the digest of their manifest."""
    manifests = home.night(DATE).rglob(MANIFEST)
    whole = [manifest.parent for manifest in manifests if committed(manifest.parent)]
    return {str(folder.relative_to(home.root)): _digest(folder / MANIFEST) for folder in whole}


def outcome(home: Home) -> dict[str, Any]:
    """What a night came to: its tables, its checkpoints, its decision; without anything that tells the time."""
    night = home.night(DATE)
    summary = json.loads((night / "summary.json").read_text())
    told = ("decision", "reasons", "digests", "accuracy", "benchmarks", "rounds", "verdicts")
    tables = {str(file.relative_to(night)): _digest(file) for name in TABLES for file in night.rglob(name)}
    policies = {str(file.relative_to(night)): file.read_text() for file in night.rglob("checkpoint.txt")}
    alarms = [(one["name"], one["severe"], one["round"]) for one in _alarms(night) if one["name"] not in BY_THE_CLOCK]
    found = {name: summary[name] for name in told} | tables | policies
    return found | {"registry": _registered(home), "alarms": sorted(alarms)}


def _alarms(night: Path) -> list[dict[str, Any]]:
    file = night / "alarms.json"
    return json.loads(file.read_text()) if file.exists() else []


def differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Where an outcome is another than the undisturbed night's."""
    keys = sorted({*found, *expected})
    return [
        f"{key} is {found.get(key)}, not {expected.get(key)}" for key in keys if found.get(key) != expected.get(key)
    ]


def repeated(trace: Iterable[tuple[float, str]], kept: Iterable[str] = ()) -> list[str]:
    """Stages that the last start in a log began although they were committed: before it (`kept`), or by itself."""
    events = [event for _, event in trace]
    last = max(number for number, event in enumerate(events) if event == "start")
    done, found = set(kept), []
    for event in events[last:]:
        verb, _, what = event.partition(" ")
        if verb == "renamed" and what.endswith(MOVED):
            done.add(what.removesuffix(MOVED))
        elif verb == "begin" and what in done:
            found.append(f"{what} was run again")
    return found


def aliases(home: Home) -> dict[str, str]:
    """The digests behind `daytime` and `previous`."""
    named = {alias: _registry(home).named(alias) for alias in (DAYTIME, PREVIOUS)}
    return {alias: version.digest for alias, version in named.items() if version}


def broken_aliases(home: Home) -> list[str]:
    """Aliases that name no whole, loadable checkpoint."""
    return [
        f"{alias} names {digest}, which is not whole"
        for alias, digest in aliases(home).items()
        if not is_intact(home.checkpoints / digest) or not _loads(home.checkpoints / digest)
    ]


def _registered(home: Home) -> list[Any]:
    """Aliases, versions, and how many models stand behind those: a registration that was repeated would show."""
    registry = _registry(home)
    (experiment,) = registry.client.search_experiments(filter_string="name = 'nightschool'")
    models = registry.client.search_logged_models([experiment.experiment_id])
    return [aliases(home), [version.digest for version in registry.versions()], len(models)]


def _registry(home: Home) -> Registry:
    return Registry(MlflowClient(tracking_uri=home.database, registry_uri=home.database), NAME)


@cache
def _loads(checkpoint: Path) -> bool:
    return sum(weight.numel() for weight in plain_model(checkpoint).parameters()) > 0


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
