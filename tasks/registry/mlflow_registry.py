"""Checkpoints as MLflow model versions. The alias `daytime` marks the serving version, `previous` the one before it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion, RegisteredModel
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.utils.file_utils import local_file_uri_to_path
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE
from mlflow.utils.uri import is_local_uri

from models.hf.checkpoint import copy_companions, is_adapter

DAYTIME, PREVIOUS = "daytime", "previous"
SERVED = f"{DAYTIME}."  # prefix of the tags that log moves: `daytime.3` = `night 2026-11-20 at 2026-11-21T02:13:05Z`
REWARD_MODEL = "reward model"  # the role of a version that scores answers
PARTS = "model", "components/tokenizer"  # folders of a logged `transformers` model
PROMOTE, ROLLBACK = "promote", "rollback"  # the commands that move `daytime` by hand


@dataclass(frozen=True)
class Version:
    """A checkpoint registered as a model version, its accuracy on its exam's target, and how many problems that was."""

    version: str
    digest: str
    parent: str
    night: str
    role: str
    accuracy: float | None
    problems: int | None
    promoted: bool
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Move:
    """A move of the alias `daytime` to `version`. Moves are numbered from 1.

    `at`: the time (UTC, ISO 8601). `by`: what moved the alias: a command (`promote`) or a night (`night 2026-11-20`).
    """

    number: int
    at: str
    version: str
    by: str

    @property
    def by_hand(self) -> bool:
        """Whether the owner moved the alias with a command."""
        return self.by in (PROMOTE, ROLLBACK)


class Registry:
    """The versions of one registered model."""

    def __init__(self, client: MlflowClient, model: str) -> None:
        self.client, self.model = client, model

    @property
    def reward_models(self) -> "Registry":
        """The separate registry of this model's reward models."""
        return Registry(self.client, f"{self.model}-reward")

    def versions(self) -> list[Version]:
        """Return all versions, oldest first. Ignores versions without a digest: other programs made them."""
        model = self._registered()
        if model is None:
            return []
        return [
            Version(
                version=str(v.version),
                digest=v.tags["digest"],
                parent=v.tags.get("parent", ""),
                night=v.tags.get("night", ""),
                role=v.tags.get("role", ""),
                accuracy=float(v.tags["accuracy"]) if "accuracy" in v.tags else None,
                problems=int(v.tags["problems"]) if "problems" in v.tags else None,
                promoted="promoted" in v.tags,
                aliases=tuple(sorted(name for name, number in model.aliases.items() if str(number) == str(v.version))),
            )
            for v in sorted(self._search(), key=lambda v: int(v.version))
            if v.tags.get("digest")
        ]

    def others(self) -> dict[str, str]:
        """Return a dict from digest to model name, for versions of all models but this one and its reward models."""
        own = (self.model, self.reward_models.model)
        versions = self.client.search_model_versions()
        return {v.tags["digest"]: v.name for v in versions if v.name not in own and v.tags.get("digest")}

    def named(self, alias: str) -> Version | None:
        """Return the version that an alias points to, or None if the alias does not exist."""
        return next((version for version in self.versions() if alias in version.aliases), None)

    def find(self, name: str) -> Version | None:
        """Return the newest version with this number, alias or digest (4 digits suffice if unique), or None."""
        versions = self.versions()[::-1]
        found = [version for version in versions if name in (version.version, *version.aliases)]
        digests = {version.digest for version in versions if len(name) >= 4 and version.digest.startswith(name)}
        if len(digests) == 1:
            found += [version for version in versions if version.digest in digests]
        return found[0] if found else None

    def moves(self) -> list[Move]:
        """Return the moves of `daytime` in order, except moves to versions that are no longer registered."""
        moves = []
        for v in self._search():
            for key, value in v.tags.items():
                if key.startswith(SERVED):
                    by, _, at = value.rpartition(" at ")
                    moves.append(Move(int(key.removeprefix(SERVED)), at, str(v.version), by))
        return sorted(moves, key=lambda move: move.number)

    def register(
        self, checkpoint: Path, run_id: str, experiment_id: str, tags: Mapping[str, str], metrics: Mapping[str, float]
    ) -> Version:
        """Register a checkpoint with its exam results. If it is already registered, return the existing version.

        Each version gets a run and a logged model. The run is nested in the night's run `run_id`, so that MLflow can
        compare versions. `mlflow.transformers.load_model` can load the logged model of a full language model. Reward
        models (whose head MLflow does not support) and adapters (which need their base) are logged without a flavor.
        """
        known = next((version for version in self.versions() if version.digest == checkpoint.name), None)
        if known is not None:
            return known
        if self._registered() is None:
            note = f"Checkpoints of `{self.model}`. The alias `{DAYTIME}` serves, `{PREVIOUS}` is its predecessor."
            if tags["role"] == REWARD_MODEL:
                note = "Reward models, fitted to the owner's picks: backbones with a head, `reward_head.safetensors`."
            self.client.create_registered_model(self.model, description=note)
        tags = {"digest": checkpoint.name, **tags}
        name = f"{tags['role'].replace(' ', '-')}-{checkpoint.name[:8]}"
        note = f"The {tags['role']} of the night {tags['night']}, checkpoint {checkpoint.name}."
        run = self._nested_run(run_id, experiment_id, name, {**tags, MLFLOW_RUN_NOTE: note})
        leftover = self.client.search_logged_models([experiment_id], filter_string=f"source_run_id = '{run}'")
        model = (leftover or [self.client.create_logged_model(experiment_id, name, source_run_id=run, tags=tags)])[0]
        source = self._source(checkpoint, tags["role"], model.model_id, model.artifact_location)
        self.client.finalize_logged_model(model.model_id, "READY")
        for key, value in metrics.items():
            self.client.log_metric(run, key, value, model_id=model.model_id)
        self.client.set_terminated(run)
        created = self.client.create_model_version(
            self.model, source, run_id=run, tags=tags, model_id=model.model_id, description=note
        )
        return next(version for version in self.versions() if version.version == str(created.version))

    def _nested_run(self, parent: str, experiment_id: str, name: str, tags: Mapping[str, str]) -> str:
        """Return the id of a checkpoint's nested run, either a new run or one that an interrupted registration left."""
        nested = f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{parent}' and tags.digest = '{tags['digest']}'"
        if leftover := self.client.search_runs([experiment_id], nested):
            return leftover[0].info.run_id
        return self.client.create_run(
            experiment_id, run_name=name, tags={**tags, MLFLOW_PARENT_RUN_ID: parent}
        ).info.run_id

    def promote(self, version: str, by: str = PROMOTE) -> None:
        """Move the alias `daytime` to a version, which then serves. `by`: the command or the night that moves it.

        First, a single call logs the move as a tag of the version. Both aliases are derived from these tags, so that
        `finish_alias_move` can complete a move that a crash interrupted.
        """
        self.finish_alias_move()
        self.client.set_model_version_tag(self.model, version, "promoted", "yes")
        moves = self.moves()
        if moves and moves[-1].version == version:
            return
        number = moves[-1].number + 1 if moves else 1
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.client.set_model_version_tag(self.model, version, f"{SERVED}{number}", f"{by} at {at}")
        self.finish_alias_move()

    def finish_alias_move(self) -> bool:
        """Set both aliases as the logged moves require. Return whether either was out of date, e.g. after a crash.

        `daytime` names the version of the last move, and `previous` names the version that served before that one.
        `previous` is set first, so that both aliases always name a version that has served.
        """
        model, moves = self._registered(), self.moves()
        if model is None or not moves:
            return False
        serving = moves[-1].version
        earlier = [move.version for move in moves if move.version != serving]
        wanted = ({PREVIOUS: earlier[-1]} if earlier else {}) | {DAYTIME: serving}
        behind = {alias: version for alias, version in wanted.items() if str(model.aliases.get(alias)) != version}
        for alias, version in behind.items():
            self.client.set_registered_model_alias(self.model, alias, version)
        return bool(behind)

    def remove(self, version: str) -> None:
        """Remove a version from the registry. Its MLflow run and its exam answers are kept."""
        self.client.delete_model_version(self.model, version)

    def _search(self) -> list[ModelVersion]:
        return list(self.client.search_model_versions(f"name = '{self.model}'"))

    def _registered(self) -> RegisteredModel | None:
        try:
            return self.client.get_registered_model(self.model)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _source(self, checkpoint: Path, role: str, model_id: str, location: str) -> str:
        """Lay out a checkpoint as MLflow's flavor `transformers` expects, and return the URI from which to load it.

        In a local artifact store, the parts are symlinks to the checkpoint; otherwise they are uploaded. A server needs
        a URI `models:/m-…`. With a database, MLflow 3.17 cannot resolve such a URI, because it asks the global client.
        """
        loadable = role != REWARD_MODEL and not is_adapter(checkpoint)  # an adapter needs its base
        flavors = {"transformers": _flavor(checkpoint)} if loadable else {}
        flavor = Model(flavors=flavors, model_id=model_id)
        if is_local_uri(location):
            folder = Path(local_file_uri_to_path(location))
            for part in PARTS:
                link = folder / part
                link.parent.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)  # left by an interrupted registration
                link.symlink_to(os.path.relpath(checkpoint, link.parent))
            flavor.save(folder / "MLmodel")
        else:
            with TemporaryDirectory() as folder:
                flavor.save(Path(folder, "MLmodel"))
                copy_companions(checkpoint, Path(folder, PARTS[1]))
                self.client.log_model_artifacts(model_id, folder)
            self.client.log_model_artifacts(model_id, str(checkpoint), PARTS[0])
        return location if self.client.tracking_uri.startswith("sqlite:") else f"models:/{model_id}"


def _flavor(checkpoint: Path) -> dict[str, Any]:
    """Return the flavor settings that `mlflow.transformers.load_model` needs to build a pipeline from a checkpoint."""
    config = json.loads((checkpoint / "config.json").read_text())
    return {
        "task": "text-generation",
        "pipeline_model_type": config["architectures"][0],
        "source_model_name": checkpoint.name,
        "model_binary": PARTS[0],
        "components": ["tokenizer"],
        "tokenizer_type": "AutoTokenizer",
    }
