"""Remove checkpoints and files of old nights that no night needs (see docs/how-to/every-night.md)."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.load import config_of
from conf.storage.home import DIGEST, NIGHTS, START, SUMMARY, Home
from conf.storage.locks import alias_lock
from models.hf.checkpoint import DamagedCheckpointError, base_of
from models.optim.trainer_state import NOTE
from tasks.evaluation import stored_answers
from tasks.monitoring.tracking import RUN_FILE
from tasks.registry.mlflow_registry import Registry, Version

BIG_TABLES = ("rollouts.parquet", "scores.parquet", "advantages.parquet", "episodes.json")  # of a night's rounds


@dataclass(frozen=True)
class Item:
    """Files and folders that are removed together, with their version in a registry (None if they have none)."""

    what: str
    why: str
    paths: tuple[Path, ...]
    version: str | None = None
    registry: Registry | None = None

    @property
    def size(self) -> int:
        """The number of bytes that removing this item frees."""
        return sum(bytes_freed(path) for path in self.paths)


@dataclass(frozen=True)
class Pruning:
    """A pruning plan. `goes`: the items to remove. `stays`: why each other checkpoint stays, by digest."""

    goes: tuple[Item, ...]
    stays: Mapping[str, str]


@task(name="prune", task_run_name="prune", cache_policy=NO_CACHE)
def prune(home: Home, keep_nights: int, registry: Registry) -> list[str]:
    """Make and carry out a pruning plan. Return the names of its items. The caller must hold the home's lock."""
    planned = plan(home, keep_nights, registry)
    remove(home, planned)
    return [item.what for item in planned.goes]


def plan(home: Home, keep_nights: int, registry: Registry) -> Pruning:
    """Return a pruning plan without removing anything. `keep_nights`: how many newest nights keep their versions."""
    dates = sorted((folder.name for folder in home.nights.glob(NIGHTS)), reverse=True)
    oldest = dates[keep_nights - 1] if len(dates) >= keep_nights else ""  # the oldest of the newest `keep_nights`
    stays = _reasons_to_stay(home, registry, oldest)
    on_disk = {folder.name for folder in home.checkpoints.glob("*") if DIGEST.fullmatch(folder.name)}
    stays |= _of_another_mlflow(home, registry.client, on_disk - stays.keys())
    goes: list[Item] = []
    unnamed = on_disk - stays.keys()
    for kind, holder in (("version", registry), ("reward model", registry.reward_models)):
        for version in holder.versions():
            if (digest := version.digest) in unnamed:  # others stay or belong to other homes on the server
                unnamed.remove(digest)
                why = f"never promoted, and the night {version.night} is older than the newest {keep_nights}"
                what, paths = f"{kind} {version.version} ({digest})", (home.checkpoints / digest,)
                goes.append(Item(what, why, paths, version.version, holder))
    for digest in sorted(unnamed):
        goes.append(Item(f"checkpoint {digest}", "nothing names it", (home.checkpoints / digest,)))
    if (draft := home.checkpoints / "draft").exists():
        goes.append(Item("draft", "an unfinished checkpoint", (draft,)))
    for digest, folder in stored_answers.orphans(home.exams, on_disk & stays.keys()):
        goes.append(Item(f"exam of {digest}", "its checkpoint is not in this home", (folder,)))
    goes += _old_tables(home, registry.model, oldest)
    return Pruning(tuple(goes), {digest: why for digest, why in sorted(stays.items()) if digest in on_disk})


def remove(home: Home, planned: Pruning) -> None:
    """Carry out a pruning plan. Remove registry entries before files: a crash must leave no entry without weights.

    What no registry knows goes first: on a full disk, that makes the room that the registry's database needs.
    """
    for item in sorted(planned.goes, key=lambda item: item.registry is not None):
        if item.registry is not None and item.version is not None:
            with alias_lock(home):
                known = next((known for known in item.registry.versions() if known.version == item.version), None)
                if known is not None:  # else it was removed after the plan was made
                    if known.aliases or known.promoted:  # or promoted
                        continue
                    item.registry.remove(item.version)
        for path in item.paths:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def bytes_freed(path: Path) -> int:
    """Return the bytes that removing a file or folder frees. A file with other hard links counts as zero."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(status.st_size for file in files if (status := file.stat()).st_nlink == 1)


def _reasons_to_stay(home: Home, registry: Registry, oldest: str) -> dict[str, str]:
    """Return, by digest, why checkpoints must stay. `oldest`: the oldest of the nights that keep all their versions."""
    stays: dict[str, str] = {}
    for version in registry.versions():
        if why := _standing(version, oldest):
            stays[version.digest] = why
    for digest, model in registry.others().items():
        stays.setdefault(digest, f"it is registered as {model} too, whose own nights prune it")
    for folder in sorted(home.nights.glob(NIGHTS)):
        if not (folder / SUMMARY).exists():
            for digest in _needed(folder):
                stays.setdefault(digest, f"the night {folder.name} is unfinished: finish it, or remove its folder")
        for note, what in (("champion.txt", "champion"), ("fit_reward_model/checkpoint.txt", "reward model")):
            if folder.name >= oldest and (file := folder / note).exists():
                stays.setdefault(file.read_text().strip(), f"the {what} of {folder.name}, one of the newest nights")
    bases: dict[str, str] = {}
    for digest in stays:
        with suppress(DamagedCheckpointError, ValueError):  # a damaged adapter needs no base
            if (base := base_of(home.checkpoints / digest).name) not in stays:
                bases[base] = f"it is the base of {digest}"
    return stays | bases


def _standing(version: Version, oldest: str) -> str | None:
    if version.aliases:
        return f"{' and '.join(version.aliases)} (version {version.version})"
    if version.promoted:
        return f"it was promoted (version {version.version}, the night {version.night})"
    if version.night >= oldest:
        return f"the night {version.night} is one of the newest (version {version.version})"
    return None


def _of_another_mlflow(home: Home, client: MlflowClient, digests: set[str]) -> dict[str, str]:
    """Return those of `digests` whose nights are recorded in another MLflow database, each with this reason to keep it.

    Only the other database tells which of these checkpoints were promoted.
    """
    stays: dict[str, str] = {}
    for file in sorted(home.nights.glob(f"{NIGHTS}/{SUMMARY}")):
        named = digests & set(json.loads(file.read_text()).get("digests", {}).values())
        try:
            if named:
                client.get_run((file.parent / RUN_FILE).read_text().strip())
        except (OSError, MlflowException):
            stays |= dict.fromkeys(named, f"the night {file.parent.name} is recorded in another MLflow database")
    return stays


def _needed(night: Path) -> set[str]:
    """Return the digests that a night needs to resume: its champion, its start, and its stages' and trainer states'."""
    notes = [night / "champion.txt", *night.rglob("checkpoint.txt")]
    digests = {note.read_text().strip() for note in notes if note.exists()}
    for file, key in ((night / START, "digest"), *((state, "checkpoint") for state in night.glob(f"state/*/{NOTE}"))):
        with suppress(FileNotFoundError, ValueError, KeyError):  # a night cannot resume from a damaged state
            digests.add(json.loads(file.read_text())[key])
    return digests


def _old_tables(home: Home, model: str, oldest: str) -> Iterator[Item]:
    """Yield an item with what the rounds of each finished night of `model` before `oldest` sampled."""
    for folder in sorted(home.nights.glob(NIGHTS)):
        if folder.name >= oldest or not (folder / SUMMARY).exists():
            continue
        tables = tuple(sorted(file for name in BIG_TABLES for file in folder.glob(f"round-*/**/{name}")))
        if tables and (config := config_of(folder)) and config.name == model:
            yield Item(f"rollouts of {folder.name}", "a finished night, older than the newest", tables)
