"""`nightschool prune`: list or remove what no night needs any more (docs/how-to/every-night.md)."""

from contextlib import nullcontext
from typing import Any

from conf.storage.home import Home
from conf.storage.locks import hold, refuse_if_night_running
from tasks.registry.mlflow_registry import Registry
from tasks.registry.prune import Pruning, bytes_freed, plan, remove


def prune_home(home: Home, registry: Registry | None, keep_nights: int, dry_run: bool) -> dict[str, Any]:
    """Remove what no night needs, or only list it if `dry_run`. Return what goes, and why the other checkpoints stay.

    Removes nothing if `registry` is None because no night has created one. Raises NightRunningError while a night runs.
    """
    refuse_if_night_running(home.root)
    only_planned = dry_run or registry is None
    with nullcontext() if only_planned else hold(home.root, "nightschool prune"):
        planned = plan(home, keep_nights, registry) if registry else Pruning((), {})
        goes = [
            {"what": item.what, "version": item.version, "bytes": item.size, "why": item.why} for item in planned.goes
        ]
        if registry and not dry_run:
            remove(home, planned)
    stays = [
        {"digest": digest, "bytes": bytes_freed(home.checkpoints / digest), "why": why}
        for digest, why in planned.stays.items()
    ]
    return {"dry_run": dry_run, "bytes": sum(item["bytes"] for item in goes), "goes": goes, "stays": stays}


def lines_of(pruned: dict[str, Any]) -> list[str]:
    """Return the result of `prune_home` as readable lines: one per item, then the total."""
    verb = "would remove" if pruned["dry_run"] else "removed"
    lines = [f"{verb:12} {_size(item['bytes'])}  {item['what']}: {item['why']}" for item in pruned["goes"]]
    lines += [f"{'kept':12} {_size(item['bytes'])}  {item['digest']}: {item['why']}" for item in pruned["stays"]]
    total = f"{verb}: {len(pruned['goes'])}, {_size(pruned['bytes']).strip()}"
    return [*lines, f"{total}; checkpoints kept: {len(pruned['stays'])}"]


def _size(size: int) -> str:
    return f"{size / 1e6:8.1f} MB"
