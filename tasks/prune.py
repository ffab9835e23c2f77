"""Upkeep: what no promotion chose and no night needs does not stay for ever (the rule: docs/upkeep.md)."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.home import DIGEST, SUMMARY, Home
from conf.load import config_of
from tasks import kept_exams
from tasks.alias_lock import alias_lock
from tasks.keeping import elsewhere, oldest_kept, reasons
from tasks.registry import Registry

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


@task(name="prune", task_run_name="prune", tags=["registry"], cache_policy=NO_CACHE)
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
    for digest, folder in kept_exams.orphans(home.exams, staying):
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
