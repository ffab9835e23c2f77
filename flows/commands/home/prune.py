"""`nightschool prune`: list or remove what no night needs any more (docs/how-to/every-night.md)."""

from contextlib import nullcontext
from typing import Annotated

import typer

from conf.storage.home import Home
from conf.storage.locks import hold, refuse_if_night_running
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json


def prune(
    config: Config = None,
    overrides: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only show what would be removed, and why")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove unpromoted checkpoints that no night needs, and old tables. Every night ends with this cleanup."""
    from flows.web.health import open_registry  # MLflow takes seconds to import
    from tasks.registry.prune import Pruning, bytes_freed, plan, remove

    home, settings = Home.here(), configuration(config, overrides)
    registry = open_registry(home, settings)
    refuse_if_night_running(home.root)
    removes = registry is not None and not dry_run
    with hold(home.root, "nightschool prune") if removes else nullcontext():
        planned = plan(home, settings.keep_nights, registry) if registry else Pruning((), {})
        goes = [{"what": one.what, "version": one.version, "bytes": one.size, "why": one.why} for one in planned.goes]
        if removes:
            remove(home, planned)
    stays = [
        {"digest": digest, "bytes": bytes_freed(home.checkpoints / digest), "why": why}
        for digest, why in planned.stays.items()
    ]
    size = sum(item["bytes"] for item in goes)
    if as_json:
        print_json({"dry_run": dry_run, "bytes": size, "goes": goes, "stays": stays})
        return
    verb = "would remove" if dry_run else "removed"
    for item in goes:
        print(f"{verb:12} {_size(item['bytes'])}  {item['what']}: {item['why']}")
    for item in stays:
        print(f"{'kept':12} {_size(item['bytes'])}  {item['digest']}: {item['why']}")
    print(f"{verb}: {len(goes)}, {_size(size).strip()}; checkpoints kept: {len(stays)}")


def _size(size: int) -> str:
    return f"{size / 1e6:8.1f} MB"
