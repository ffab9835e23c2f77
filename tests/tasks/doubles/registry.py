"""Homes with a real MLflow database and small checkpoints, and clients that are killed between two calls."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import SUMMARY, Home
from models.hf.checkpoint import keep, write_lineage
from tasks.monitoring.tracking import RUN_FILE, Tracking
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, REWARD_MODEL, SERVED, Registry, Version
from tasks.registry.prune import prune

ROLES = ("champion", "distilled", "candidate")
DATES = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"]


def make_checkpoint(checkpoints: Path, text: str, parent: str | None = None, base: str | None = None) -> Path:
    draft = checkpoints / "new"
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_text(text)
    (draft / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    write_lineage(draft, parent, base)
    return keep(draft, checkpoints)


def make_models(checkpoints: Path) -> dict[str, Path]:
    """Champion, distilled and candidate, each the parent of the next."""
    models: dict[str, Path] = {}
    parent = None
    for role in ROLES:
        models[role] = make_checkpoint(checkpoints, role, parent)
        parent = models[role].name
    return models


class School:
    """A home with a night's run in MLflow, three checkpoints, and their registry."""

    def __init__(self, home: Home) -> None:
        config = load_night(STARTER)
        self.tracking = Tracking(home, config)
        night = home.night("2026-11-20")
        night.mkdir(parents=True)
        self.tracking.open_run(night, config, {})
        self.registry = Registry(self.tracking.client, "student")
        self.checkpoints = [make_checkpoint(home.checkpoints, text) for text in ("one", "two", "three")]

    def register(self, number: int, role: str = "candidate", accuracy: float = 0.5) -> Version:
        tags = {
            "role": role,
            "night": "2026-11-20",
            "parent": "cafe42",
            "accuracy": f"{accuracy:.4f}",
            "problems": "100",
        }
        run, experiment = self.tracking.run_id, self.tracking.experiment_id
        return self.registry.register(
            self.checkpoints[number], run, experiment, tags, {"exam/arithmetic-1-2": accuracy}
        )

    def aliases(self) -> tuple[str | None, str | None]:
        """The versions behind `daytime` and `previous`."""
        daytime, previous = (self.registry.named(alias) for alias in (DAYTIME, PREVIOUS))
        return daytime and daytime.version, previous and previous.version


class PrunedSchool:
    """A home with four finished nights, recorded in its own MLflow database or on a server."""

    def __init__(self, home: Home, server: str | None = None) -> None:
        self.home, self.config = home, load_night(STARTER, [f"tracking.tracking_uri={server}"] if server else [])
        self.tracking = Tracking(home, self.config)
        self.registry = Registry(self.tracking.client, "starter")
        home.night(DATES[0]).mkdir(parents=True)
        self.tracking.open_run(home.night(DATES[0]), self.config, {})
        for date in DATES:
            self.night(date)

    def night(self, date: str, *, finished: bool = True, run: str | None = None, digests: tuple[str, ...] = ()) -> Path:
        folder = self.home.night(date)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(frozen_yaml(self.config))
        (folder / RUN_FILE).write_text(run or self.tracking.run_id)
        if finished:
            (folder / SUMMARY).write_text(json.dumps({"digests": dict(enumerate(digests))}))
        return folder

    def checkpoint(self, text: str, base: str | None = None) -> Path:
        return make_checkpoint(self.home.checkpoints, text, base=base)

    def version(
        self, text: str, date: str, *, model: str = "starter", role: str = "candidate", promote: bool = False
    ) -> Path:
        checkpoint = self.checkpoint(text)
        registry, tags = Registry(self.tracking.client, model), {"role": role, "night": date}
        registry = registry.reward_models if role == REWARD_MODEL else registry
        made = registry.register(checkpoint, self.tracking.run_id, self.tracking.experiment_id, tags, {})
        if promote:
            registry.promote(made.version)
        return checkpoint

    def prune(self) -> list[str]:
        return prune.fn(self.home, 2, self.registry)

    def on_disk(self) -> set[str]:
        return {folder.name for folder in self.home.checkpoints.iterdir()}

    def registered(self, model: str = "starter") -> list[str]:
        return [version.digest for version in Registry(self.tracking.client, model).versions()]


class Interrupted:
    """The client of a process that is killed before the n-th call that writes."""

    def __init__(self, client: MlflowClient, calls: int) -> None:
        self.client, self.left, self.tracking_uri = client, calls, client.tracking_uri

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("create", "set", "delete", "finalize", "log")):
            if not self.left:
                raise KeyboardInterrupt(name)
            self.left -= 1
        return getattr(self.client, name)


def interrupted_at_each_call(caller: Registry | Tracking, act: Callable[[], object]) -> Iterator[str]:
    """Act until it comes through, one call further each time; yields the name of the call that was not made."""
    client, calls = caller.client, 0
    while True:
        stand_in: Any = Interrupted(client, calls)
        caller.client = stand_in
        try:
            act()
            return
        except KeyboardInterrupt as stopped:
            name = str(stopped)
        finally:
            caller.client = client
        yield name
        calls += 1


def forget_moves(registry: Registry) -> None:
    """As if no version had ever served."""
    for alias in (DAYTIME, PREVIOUS):
        registry.client.delete_registered_model_alias(registry.model, alias)
    for move in registry.moves():
        registry.client.delete_model_version_tag(registry.model, move.version, f"{SERVED}{move.number}")
