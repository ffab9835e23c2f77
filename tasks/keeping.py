"""Why a checkpoint stays: what names it in the registry, and which night still needs it."""

import json
from contextlib import suppress
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from conf.home import SUMMARY, Home
from models.checkpoint import DamagedCheckpointError, base_of
from models.trainer_state import NOTE
from tasks.registry import Registry, Version
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
