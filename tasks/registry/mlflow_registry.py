"""The registry: checkpoints as MLflow model versions; `daytime` serves, `previous` is the one before."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import LoggedModel
from mlflow.entities.model_registry import RegisteredModel
from mlflow.exceptions import MlflowException

DAYTIME, PREVIOUS = "daytime", "previous"
MOVING = "moving"  # a tag of the model: which alias is on its way to which version, since when, and by whose doing
SINCE = f"{DAYTIME}."  # begins a version's tags of the moments since which it served; each says by whose doing
PROMOTE, ROLLBACK = "promote", "rollback"  # the commands that move `daytime` by hand


@dataclass(frozen=True)
class Version:
    """A registered checkpoint."""

    version: str
    digest: str
    parent: str
    night: str
    role: str
    accuracy: float | None
    promoted: bool
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Move:
    """Since when (UTC, ISO 8601) a version served by day, and by whose doing: a command's, or `night 2026-11-20`."""

    at: str
    version: str
    by: str

    @property
    def by_hand(self) -> bool:
        """Whether the owner did it."""
        return self.by in (PROMOTE, ROLLBACK)


class Registry:
    """The versions of one registered model."""

    def __init__(self, client: MlflowClient, model: str) -> None:
        self.client, self.model = client, model

    def versions(self) -> list[Version]:
        """All versions, the oldest first; none where nothing was registered yet."""
        model = self._registered()
        if model is None:
            return []
        found = self.client.search_model_versions(f"name = '{self.model}'")
        return [
            Version(
                version=str(v.version),
                digest=v.tags["digest"],
                parent=v.tags.get("parent", ""),
                night=v.tags.get("night", ""),
                role=v.tags.get("role", ""),
                accuracy=float(v.tags["accuracy"]) if "accuracy" in v.tags else None,
                promoted="promoted" in v.tags,
                aliases=tuple(
                    sorted(name for name, version in model.aliases.items() if str(version) == str(v.version))
                ),
            )
            for v in sorted(found, key=lambda v: int(v.version))
            if v.tags.get("digest")  # what others registered under this name is none of ours
        ]

    def others(self) -> dict[str, str]:
        """The digests that other registered models name, each with the name of such a model."""
        found: dict[str, str] = {}
        token = None
        while True:
            page = self.client.search_model_versions(page_token=token)
            found |= {v.tags["digest"]: v.name for v in page if v.name != self.model and v.tags.get("digest")}
            if not (token := page.token):
                return found

    def named(self, alias: str) -> Version | None:
        """The version under an alias."""
        return next((version for version in self.versions() if alias in version.aliases), None)

    def moves(self) -> list[Move]:
        """Who served by day, one after the other, as far as the versions are still there."""
        found = self.client.search_model_versions(f"name = '{self.model}'")
        moves = [
            Move(key.removeprefix(SINCE), str(v.version), by)
            for v in found
            for key, by in v.tags.items()
            if key.startswith(SINCE)
        ]
        return sorted(moves, key=lambda move: move.at)

    def register(
        self, checkpoint: Path, run_id: str, experiment_id: str, tags: Mapping[str, str], metrics: Mapping[str, float]
    ) -> Version:
        """Registers a checkpoint with its exam results, once: a digest that is there already keeps its version.

        On a database of our own the version's source is the checkpoint's own folder; a server takes no local paths,
        so there the files are hard-linked (or copied) into the logged model's place.
        """
        known = next((version for version in self.versions() if version.digest == checkpoint.name), None)
        if known is not None:
            return known
        if not self.versions():
            self._create()
        model = self._logged_model(checkpoint.name, run_id, experiment_id, tags)
        source = self._source(checkpoint, model.model_id, model.artifact_location)
        self.client.finalize_logged_model(model.model_id, "READY")
        for name, value in metrics.items():
            self.client.log_metric(run_id, name, value, model_id=model.model_id)
        created = self.client.create_model_version(
            self.model, source, run_id=run_id, tags={"digest": checkpoint.name, **tags}, model_id=model.model_id
        )
        return next(version for version in self.versions() if version.version == str(created.version))

    def _logged_model(self, digest: str, run_id: str, experiment_id: str, tags: Mapping[str, str]) -> LoggedModel:
        """The evidence behind a version; the one that a registration left which was interrupted, if there is one."""
        left = self.client.search_logged_models([experiment_id], filter_string=f"tags.digest = '{digest}'")
        if left:
            return left[0]
        name = f"{tags['role']}-{digest[:8]}"
        return self.client.create_logged_model(
            experiment_id, name=name, source_run_id=run_id, tags={"digest": digest, **tags}
        )

    def promote(self, version: str, by: str = PROMOTE) -> None:
        """Makes a version the one that serves by day; `by` says by whose doing.

        Aliases move one by one. What is to move is written down first, so that `settle` can finish it: otherwise a
        crash in between would lose the predecessor, and the way back.
        """
        self.settle()
        serving = self.named(DAYTIME)
        moves = {DAYTIME: version}
        if serving is None or serving.version != version:
            moves |= {"since": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"), "by": by}
            moves |= {PREVIOUS: serving.version} if serving else {}
        self.client.set_model_version_tag(self.model, version, "promoted", "yes")
        self.client.set_registered_model_tag(self.model, MOVING, json.dumps(moves))
        self.settle()

    def settle(self) -> bool:
        """Finishes a move of the aliases that was interrupted, `previous` first: every moment between is whole.

        Returns whether there was one.
        """
        model = self._registered()
        if model is None or MOVING not in model.tags:
            return False
        moves = json.loads(model.tags[MOVING])
        for alias in (PREVIOUS, DAYTIME):
            if alias in moves:
                self.client.set_registered_model_alias(self.model, alias, moves[alias])
        if "since" in moves:
            self.client.set_model_version_tag(self.model, moves[DAYTIME], SINCE + moves["since"], moves["by"])
        self.client.delete_registered_model_tag(self.model, MOVING)
        return True

    def rollback(self) -> Version | None:
        """Swaps `daytime` and `previous`; a second rollback undoes the first. None where there is no predecessor."""
        self.settle()
        before = self.named(PREVIOUS)
        if before is not None:
            self.promote(before.version, ROLLBACK)
        return before

    def remove(self, version: str) -> None:
        """Takes a version out of the registry; its runs and exam rows stay."""
        self.client.delete_model_version(self.model, version)

    def _registered(self) -> RegisteredModel | None:
        try:
            return self.client.get_registered_model(self.model)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _create(self) -> None:
        try:
            self.client.create_registered_model(self.model)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _source(self, checkpoint: Path, model_id: str, location: str) -> str:
        if self.client.tracking_uri.startswith("sqlite:"):
            return checkpoint.as_uri()
        if location.startswith("file://"):
            _link(checkpoint, Path(location.removeprefix("file://")))
        else:
            self.client.log_model_artifacts(model_id, str(checkpoint))
        return f"models:/{model_id}"


def _link(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        (target / file.name).unlink(missing_ok=True)  # of a registration that was interrupted
        try:
            os.link(file, target / file.name)
        except OSError:  # another file system
            shutil.copy(file, target / file.name)
