"""Upkeep: checkpoints that were never promoted do not stay for ever."""

import shutil
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from conf.home import NAME
from tasks.registry import Registry


@task(name="prune", tags=["registry"], cache_policy=NO_CACHE)
def prune(checkpoints: Path, nights: Path, keep_nights: int, registry: Registry) -> list[str]:
    """Removes versions and weights of checkpoints that no promotion chose, older than the newest `keep_nights` nights.

    Their runs and exam rows stay, in MLflow and in the nights' folders. Returns the digests removed.
    """
    newest = sorted((folder.name for folder in nights.glob("????-??-??")), reverse=True)[:keep_nights]
    removed = []
    for version in registry.versions():
        if not NAME.fullmatch(version.digest):  # no checkpoint of ours, and it could lead out of the folder
            continue
        if version.promoted or version.aliases or not newest or version.night >= newest[-1]:
            continue
        registry.remove(version.version)
        shutil.rmtree(checkpoints / version.digest, ignore_errors=True)
        removed.append(version.digest)
    return removed
