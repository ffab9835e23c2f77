"""`nightschool promote` and `nightschool rollback`: the owner chooses which version serves by day."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlflow.exceptions import MlflowException

from conf.storage.home import Home, InputError
from conf.storage.locks import alias_lock
from models.hf.checkpoint import incompatibility, is_intact
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, ROLLBACK, Registry, Version


def promote_version(home: Home, registry: Registry | None, version: str) -> tuple[Version, bool]:
    """Make a registered version (see `Registry.find`) serve by day.

    Return the version that serves now, and whether a rollback would undo the promotion.

    If no version serves yet because all nights ran with `--no-promote`, this first promotes the newest champion
    registered no later than the version, so that a rollback returns to that champion.
    Raises InputError if the version is unknown or damaged, or if its architecture or tokenizer differs from the
    champion's, because the next night could not compare the two.
    """
    if registry is None:
        raise _unknown(version, [])
    with _moving(home, "promote"):
        registry.finish_alias_move()
        known, chosen = registry.versions(), registry.find(version)
        if chosen is None:
            raise _unknown(version, known)
        _refuse_damaged(home, chosen)
        serving = registry.named(DAYTIME)
        earlier = reversed(known[: known.index(chosen) + 1])
        before = serving or next((other for other in earlier if other.role == "champion"), None)
        _refuse_another_model(home, chosen, before)
        if serving is None and before is not None:
            registry.promote(before.version)
        registry.promote(chosen.version)
        return chosen, before is not None and before.version != chosen.version


def roll_back(home: Home, registry: Registry | None) -> tuple[Version, bool]:
    """Return to the version that served before. If an alias move was interrupted, finish that move instead.

    Return the version that serves now, and whether a move was finished. Raises InputError if no version served before.
    """
    none = InputError("rollback: no other version has served yet; `nightschool checkpoints` lists all")
    if registry is None:
        raise none
    with _moving(home, "rollback"):
        if registry.finish_alias_move() and (serving := registry.named(DAYTIME)) is not None:
            return serving, True
        before = registry.named(PREVIOUS)
        if before is None:
            raise none
        _refuse_damaged(home, before)
        registry.promote(before.version, ROLLBACK)
        return before, False


def _unknown(version: str, known: Sequence[Version]) -> InputError:
    there = ", ".join(each.version for each in known) or "none yet"
    return InputError(f"promote: there is no version {version}; there are {there}")


@contextmanager
def _moving(home: Home, command: str) -> Iterator[None]:
    """Hold the lock on the aliases. Raises InputError if the registry does not answer."""
    try:
        with alias_lock(home):
            yield
    except MlflowException as error:
        why = str(error).splitlines()[0]
        raise InputError(
            f"{command}: MLflow does not answer ({why}); once it is back, run the same command again"
        ) from error


def _refuse_damaged(home: Home, version: Version) -> None:
    checkpoint = home.checkpoints / version.digest
    if not is_intact(checkpoint):
        raise InputError(f"{checkpoint}: changed, damaged or missing, so it cannot serve; choose another version")


def _refuse_another_model(home: Home, chosen: Version, serving: Version | None) -> None:
    if serving is None or not (champion := home.checkpoints / serving.digest).is_dir():
        return
    if difference := incompatibility(home.checkpoints / chosen.digest, champion):
        raise InputError(
            f"promote: version {chosen.version} cannot replace the champion, version {serving.version}: {difference}; "
            "give another student a name of its own in its configuration (name: …), and it has a champion of its own"
        )
