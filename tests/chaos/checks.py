"""The checks of a killed and resumed night: nothing lost, nothing repeated, no process left behind."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from conf.storage.home import Home
from models.hf.checkpoint import is_intact
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, Registry
from tasks.stage import MANIFEST, committed
from tests.chaos.school import DATE, NAME
from tests.models.support.tiny import plain_model

MOVED = f"/{MANIFEST}"
TIMING_ALARMS = ("slow_round", "disk_short")  # they may differ from run to run
TABLES = ("rollouts.parquet", "advantages.parquet", "evaluations.parquet", "prompts.parquet")


@dataclass
class Verdict:
    """Violations, each a sentence."""

    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "; ".join([*self.lost, *self.repeated, *self.orphans]) or "nothing"


def committed_stages(home: Home) -> dict[str, str]:
    """Return the committed, undamaged stages: by path, with the digest of their manifest."""
    manifests = home.night(DATE).rglob(MANIFEST)
    whole = [manifest.parent for manifest in manifests if committed(manifest.parent)]
    return {str(folder.relative_to(home.root)): _digest(folder / MANIFEST) for folder in whole}


def outcome(home: Home) -> dict[str, Any]:
    """Return a night's tables, checkpoints and decision, without times."""
    night = home.night(DATE)
    summary = json.loads((night / "summary.json").read_text())
    keys = ("decision", "reasons", "digests", "accuracy", "benchmarks", "rounds", "verdicts")
    tables = {str(file.relative_to(night)): _digest(file) for name in TABLES for file in night.rglob(name)}
    policies = {str(file.relative_to(night)): file.read_text() for file in night.rglob("checkpoint.txt")}
    alarms = [(one["name"], one["severe"], one["round"]) for one in _alarms(night) if one["name"] not in TIMING_ALARMS]
    outcome = {name: summary[name] for name in keys} | tables | policies
    return outcome | {"registry": _registered(home), "alarms": sorted(alarms)}


def _alarms(night: Path) -> list[dict[str, Any]]:
    file = night / "alarms.json"
    return json.loads(file.read_text()) if file.exists() else []


def differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Return where an outcome differs from the undisturbed night's."""
    keys = sorted({*found, *expected})
    return [
        f"{key} is {found.get(key)}, not {expected.get(key)}" for key in keys if found.get(key) != expected.get(key)
    ]


def repeated(trace: Iterable[tuple[float, str]], kept: Iterable[str] = ()) -> list[str]:
    """Return stages that the last start began although they were committed, before it (`kept`) or by itself."""
    events = [event for _, event in trace]
    last = max(number for number, event in enumerate(events) if event == "start")
    done, found = set(kept), []
    for event in events[last:]:
        verb, _, path = event.partition(" ")
        if verb == "renamed" and path.endswith(MOVED):
            done.add(path.removesuffix(MOVED))
        elif verb == "begin" and path in done:
            found.append(f"{path} was run again")
    return found


def aliases(home: Home) -> dict[str, str]:
    """Return the digests behind `daytime` and `previous`."""
    named = {alias: _registry(home).named(alias) for alias in (DAYTIME, PREVIOUS)}
    return {alias: version.digest for alias, version in named.items() if version}


def broken_aliases(home: Home) -> list[str]:
    """Return aliases that do not name an intact, loadable checkpoint."""
    return [
        f"{alias} names {digest}, which is not intact"
        for alias, digest in aliases(home).items()
        if not is_intact(home.checkpoints / digest) or not _loads(home.checkpoints / digest)
    ]


def _registered(home: Home) -> list[Any]:
    """Return aliases, versions, and the number of logged models, by which a repeated registration shows."""
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
