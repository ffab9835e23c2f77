"""Upkeep: what no promotion chose and no night needs does not stay for ever (the rule: docs/upkeep.md)."""

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
from conf.storage.home import DIGEST, SUMMARY, Home
from conf.storage.locks import alias_lock
from models.checkpoint import DamagedCheckpointError, base_of
from models.optim.trainer_state import NOTE
from tasks.evaluation import cache
from tasks.registry.mlflow_registry import Registry, Version
from tasks.tracking import HOME_TAG, RUN_FILE, home_mark


def oldest_kept(home: Home, keep_nights: int) -> str:
    """The date of the oldest of the newest `keep_nights` nights; before there are as many, the beginning of time."""
    dates = sorted((folder.name for folder in home.nights.glob("????-??-??")), reverse=True)
    return dates[keep_nights - 1] if len(dates) >= keep_nights else ""


def reasons(home: Home, registry: Registry, oldest: str) -> dict[str, str]:
    """Why each checkpoint that must stay does so, by its digest.

    `oldest`: the first night whose versions stay whatever came of them.
    """
    found: dict[str, str] = {}
    for version in registry.versions():
        if why := _standing(version, oldest) or _foreign(home, registry, version):
            found[version.digest] = why
    for digest, model in registry.others().items():
        found.setdefault(digest, f"it is registered as {model} too, whose own nights prune it")
    for folder in sorted(home.nights.glob("????-??-??")):
        if not (folder / SUMMARY).exists():
            for digest in needed(folder):
                found.setdefault(digest, f"the night {folder.name} is unfinished: finish it, or remove its folder")
        for note, what in (("champion.txt", "champion"), ("fit_reward_model/checkpoint.txt", "reward model")):
            if folder.name >= oldest and (file := folder / note).exists():
                found.setdefault(file.read_text().strip(), f"the {what} of {folder.name}, one of the newest nights")
    return found | _bases(home, found)


def elsewhere(home: Home, client: MlflowClient, digests: set[str]) -> dict[str, str]:
    """Which of these checkpoints belong to finished nights whose run this MLflow does not know, each with the reason.

    Who looks into another database than such a night wrote into cannot tell what is promoted there.
    """
    found: dict[str, str] = {}
    for file in sorted(home.nights.glob(f"????-??-??/{SUMMARY}")):
        named = digests & set(json.loads(file.read_text()).get("digests", {}).values())
        if named and not _knows(client, file.parent):
            found |= dict.fromkeys(named, f"the night {file.parent.name} keeps its books elsewhere")
    return found


def needed(night: Path) -> set[str]:
    """The checkpoints that a night goes on from: its champion, what its stages noted, those of its trainer's states."""
    notes = [night / "champion.txt", *night.rglob("checkpoint.txt")]
    found = {note.read_text().strip() for note in notes if note.exists()}
    for state in night.glob(f"state/*/{NOTE}"):
        with suppress(ValueError, KeyError):  # a damaged one is nothing to go on from
            found.add(json.loads(state.read_text())["checkpoint"])
    return found


def _standing(version: Version, oldest: str) -> str | None:
    if version.aliases:
        return f"{' and '.join(version.aliases)} (version {version.version})"
    if version.promoted:
        return f"it was promoted (version {version.version}, the night {version.night})"
    if version.night >= oldest:
        return f"the night {version.night} is one of the newest (version {version.version})"
    return None


def _foreign(home: Home, registry: Registry, version: Version) -> str | None:
    """Homes that share a server may share a model's name, and dates; whose a version is, its night's run says.

    Of one whose run does not: another's, where neither its weights nor its night are here. The home's own database is
    nobody else's, though the mark in it is another one when the home was moved.
    """
    mark = None if registry.client.tracking_uri == home.database else _mark(registry, version)
    here = (home.checkpoints / version.digest).is_dir() or (home.nights / version.night).is_dir()
    ours = here if mark is None else mark == home_mark(home)
    return None if ours else f"another home's (version {version.version})"


def _mark(registry: Registry, version: Version) -> str | None:
    """The mark of the home whose night registered a version; None where its run is gone or has none."""
    try:
        run = registry.client.get_model_version(registry.model, version.version).run_id
        return registry.client.get_run(run).data.tags.get(HOME_TAG) if run else None
    except MlflowException:
        return None


def _bases(home: Home, found: dict[str, str]) -> dict[str, str]:
    """An adapter's base stays with it."""
    bases: dict[str, str] = {}
    for digest in found:
        with suppress(DamagedCheckpointError, ValueError):  # then nothing can be made of the adapter either
            base = base_of(home.checkpoints / digest).name
            if base not in found:
                bases[base] = f"it is the base of {digest}"
    return bases


def _knows(client: MlflowClient, night: Path) -> bool:
    try:
        client.get_run((night / RUN_FILE).read_text().strip())
    except (OSError, MlflowException):
        return False
    return True


BIG_TABLES = ("sample/rollouts.parquet", "score/scores.parquet", "credit/advantages.parquet")


@dataclass(frozen=True)
class Item:
    """Something that goes: a registered version, what lies on the disk, or both together."""

    what: str
    why: str
    version: str | None
    paths: tuple[Path, ...]

    @property
    def size(self) -> int:
        """The bytes that it gives back: a file that has another name elsewhere gives nothing."""
        return sum(size_of(path) for path in self.paths)


@dataclass(frozen=True)
class Plan:
    """What goes, and why each of the other checkpoints stays, by its digest."""

    goes: tuple[Item, ...]
    stays: Mapping[str, str]


@task(name="prune", task_run_name="prune", cache_policy=NO_CACHE)
def prune(home: Home, keep_nights: int, registry: Registry) -> list[str]:
    """Removes what the rule lets go, under the home's lock. Returns what that was."""
    found = plan(home, keep_nights, registry)
    remove(home, found, registry)
    return [item.what for item in found.goes]


def plan(home: Home, keep_nights: int, registry: Registry) -> Plan:
    """What goes and what stays; nothing is touched."""
    oldest = oldest_kept(home, keep_nights)
    stays = reasons(home, registry, oldest)
    versions = registry.versions()
    known = {version.digest for version in versions}
    on_disk = {folder.name for folder in home.checkpoints.glob("*") if DIGEST.fullmatch(folder.name)}
    stays |= elsewhere(home, registry.client, (on_disk | known) - stays.keys())
    goes: list[Item] = []
    for version in versions:
        if (digest := version.digest) not in stays:
            why = f"never promoted, and the night {version.night} is older than the newest {keep_nights}"
            folder = (home.checkpoints / digest,) if digest in on_disk else ()
            goes.append(Item(f"version {version.version} ({digest})", why, version.version, folder))
    for digest in sorted(on_disk - stays.keys() - known):
        goes.append(Item(f"checkpoint {digest}", "nothing names it", None, (home.checkpoints / digest,)))
    if (draft := home.checkpoints / "draft").exists():
        goes.append(Item("draft", "a checkpoint that never became one", None, (draft,)))
    going = {path.name for item in goes for path in item.paths}
    goes += _exams(home, on_disk - going)
    goes += _old_tables(home, registry.model, oldest)
    return Plan(tuple(goes), {digest: why for digest, why in sorted(stays.items()) if digest in on_disk})


def remove(home: Home, found: Plan, registry: Registry) -> None:
    """Removes what goes: each registry entry before its weights.

    A crash in between leaves weights that nothing names, which go next time, and never an entry without weights.
    """
    for item in found.goes:
        if item.version is not None:
            with alias_lock(home):
                if _chosen(registry, item.version):  # its owner promoted it meanwhile
                    continue
                registry.remove(item.version)
        for path in item.paths:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _chosen(registry: Registry, version: str) -> bool:
    return any(one.version == version and (one.aliases or one.promoted) for one in registry.versions())


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder, that would be free without it."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(status.st_size for file in files if (status := file.stat()).st_nlink == 1)


def _exams(home: Home, staying: set[str]) -> Iterator[Item]:
    """What checkpoints answered that are gone, or go: nobody asks for it any more."""
    for digest, folder in cache.orphans(home.exams, staying):
        yield Item(f"exam of {digest}", "its checkpoint is not in this home", None, (folder,))


def _old_tables(home: Home, model: str, oldest: str) -> Iterator[Item]:
    """What each round of old, finished nights sampled. Their exams, figures, decisions and reports stay, and the
    freezes, which say how much of the journal was read.
    """
    for folder in sorted(home.nights.glob("????-??-??")):
        if folder.name >= oldest or not (folder / SUMMARY).exists():
            continue
        places = (f"{rounds}/{table}" for rounds in ("round-*", "round-*/refill-*") for table in BIG_TABLES)
        tables = tuple(file for place in places for file in sorted(folder.glob(place)))
        if tables and (known := config_of(folder)) and known.name == model:  # another version's are left alone
            yield Item(f"rollouts of {folder.name}", "a finished night, older than the newest", None, tables)
