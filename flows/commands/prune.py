"""`nightschool prune`: what the rule of docs/upkeep.md lets go, shown, and removed while no night runs."""

from typing import Any

from conf.storage.home import Home
from conf.storage.locks import hold, refuse_second
from tasks.registry.mlflow_registry import Registry
from tasks.registry.prune import Plan, plan, remove, size_of


def prune_home(home: Home, registry: Registry | None, keep_nights: int, dry_run: bool) -> dict[str, Any]:
    """Removes what goes; `dry_run` only looks. Returns what that is, and why the other checkpoints stay.

    Raises NightRunningError while a night runs. `registry`: None where no night has begun one; then nothing goes.
    """
    refuse_second(home.root)
    if registry is None:
        return _shown(home, Plan((), {}), dry_run)
    if dry_run:
        return _shown(home, plan(home, keep_nights, registry), dry_run)
    with hold(home.root, "nightschool prune"):
        found = plan(home, keep_nights, registry)
        shown = _shown(home, found, dry_run)
        remove(home, found, registry)
    return shown


def told(found: dict[str, Any]) -> list[str]:
    """The same for people, a line each."""
    verb = "would go" if found["dry_run"] else "went"
    lines = [f"{verb:9} {_size(item['bytes'])}  {item['what']}: {item['why']}" for item in found["goes"]]
    lines += [f"{'stays':9} {_size(item['bytes'])}  {item['digest']}: {item['why']}" for item in found["stays"]]
    summary = (
        f"{len(found['goes'])} {verb}, {_size(found['bytes']).strip()}; checkpoints that stay: {len(found['stays'])}"
    )
    return [*lines, summary]


def _shown(home: Home, found: Plan, dry_run: bool) -> dict[str, Any]:
    goes = [{"what": item.what, "version": item.version, "bytes": item.size, "why": item.why} for item in found.goes]
    stays = [
        {"digest": digest, "bytes": size_of(home.checkpoints / digest), "why": why}
        for digest, why in found.stays.items()
    ]
    return {"dry_run": dry_run, "bytes": sum(item["bytes"] for item in goes), "goes": goes, "stays": stays}


def _size(size: int) -> str:
    return f"{size / 1e6:8.1f} MB"
