"""A home in which a student serves by day, although no night has run."""

import shutil
from pathlib import Path

from benchmarks.inputs.school import make
from benchmarks.inputs.starter import starter
from conf.load import STARTER, load_night
from conf.storage.home import Home


def home_with_champion(root: Path, student: Path | None = None) -> Path:
    """Make the home at `root`, replacing anything there, and return `root`. By default, the starter serves there."""
    from models.hf.checkpoint import keep, write_lineage  # imports MLflow and torch, which takes seconds
    from tasks.monitoring.tracking import Tracking
    from tasks.registry.mlflow_registry import Registry

    shutil.rmtree(root, ignore_errors=True)
    make(root)
    home, config = Home(root.resolve()), load_night(STARTER)
    home.make_private()
    tracking, night = Tracking(home, config), home.night("2026-01-01")
    night.mkdir(parents=True)
    tracking.open_run(night, config, {})
    home.checkpoints.mkdir()
    draft = Path(shutil.copytree(student or starter(), home.checkpoints / "draft"))
    write_lineage(draft, None)
    checkpoint = keep(draft, home.checkpoints)
    registry = Registry(tracking.client, config.name)
    tags = {"role": "candidate", "night": night.name, "parent": "", "accuracy": "0"}
    version = registry.register(checkpoint, tracking.run_id, tracking.experiment_id, tags, {})
    registry.promote(version.version)
    tracking.close_run("FINISHED")
    shutil.rmtree(night)
    return root
