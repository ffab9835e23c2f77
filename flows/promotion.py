"""`nightschool promote` and `nightschool rollback`: what is looked at before its owner moves the aliases of a home."""

from conf.home import Home, InputError
from models.checkpoint import is_whole, unlike
from tasks.alias_lock import alias_lock
from tasks.registry import DAYTIME, PREVIOUS, Registry, Version


def promote_version(home: Home, registry: Registry | None, version: str) -> Version:
    """Makes a registered version the one that serves by day.

    Raises InputError where there is none of this number, where it is damaged, or where it is another model than the
    champion: its prompts would be other tokens, and the next night could not compare the two.
    """
    known = registry.versions() if registry else []
    chosen = next((one for one in known if one.version == version), None)
    if registry is None or chosen is None:
        there = ", ".join(one.version for one in known) or "none yet"
        raise InputError(f"promote: there is no version {version}; there are {there}")
    with alias_lock(home):
        registry.settle()
        _refuse_damaged(home, chosen)
        _refuse_another_model(home, chosen, registry.named(DAYTIME))
        registry.promote(version)
    return chosen


def roll_back(home: Home, registry: Registry | None) -> Version:
    """Goes back to the version that served before. Raises InputError where there is none, or where it is damaged."""
    nowhere = InputError("rollback: there is no previous version to go back to; `nightschool checkpoints` lists them")
    if registry is None:
        raise nowhere
    with alias_lock(home):
        registry.settle()
        before = registry.named(PREVIOUS)
        if before is None:
            raise nowhere
        _refuse_damaged(home, before)
        registry.rollback()
    return before


def _refuse_damaged(home: Home, version: Version) -> None:
    checkpoint = home.checkpoints / version.digest
    if not is_whole(checkpoint):
        raise InputError(
            f"{checkpoint}: it was changed or damaged, or is gone: it cannot serve; choose another version"
        )


def _refuse_another_model(home: Home, chosen: Version, serving: Version | None) -> None:
    if serving is None or not (champion := home.checkpoints / serving.digest).is_dir():
        return
    if difference := unlike(home.checkpoints / chosen.digest, champion):
        raise InputError(
            f"promote: version {chosen.version} is not like the champion, version {serving.version}: {difference}; "
            "give another student a name of its own in its configuration (name: …), and it has a champion of its own"
        )
