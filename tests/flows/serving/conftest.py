"""A home by day: two tiny students in its registry, of which the first serves."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.commands.serve import IMPATIENT, KEY
from models.hf.checkpoint import copy_companions, keep, write_lineage
from tasks.monitoring.tracking import Tracking
from tasks.registry.mlflow_registry import Registry, Version
from tests.models.support.tiny import write_tiny

SETTINGS = ["engine.max_model_len=128", "engine.kv_cache_gb=1", "engine.max_num_seqs=8", "student.system=Be brief."]
CONFIG = load_night(STARTER, SETTINGS)


class School:
    """The home, its registry, and the versions of both students."""

    def __init__(self, home: Home) -> None:
        self.home, self.tracking = home, Tracking(home, CONFIG)
        night = home.night("2026-11-20")
        night.mkdir(parents=True)
        self.tracking.open_run(night, CONFIG, {})
        self.registry = Registry(self.tracking.client, CONFIG.name)
        draft = write_tiny(home.checkpoints / "draft", head_dim=32)
        write_lineage(draft, None)
        first = keep(draft, home.checkpoints)
        self.first, self.second = self.register(first), self.register(self.train(first, 1))
        self.registry.promote(self.first.version)

    def register(self, checkpoint: Path) -> Version:
        tags = {"role": "candidate", "night": "2026-11-20", "parent": "", "accuracy": "0.5"}
        return self.registry.register(checkpoint, self.tracking.run_id, self.tracking.experiment_id, tags, {})

    def train(self, checkpoint: Path, seed: int) -> Path:
        """Make another checkpoint, with noise added to the weights."""
        draft = checkpoint.parent / "draft"
        copy_companions(checkpoint, draft)
        write_lineage(draft, checkpoint.name)
        noise = torch.Generator().manual_seed(seed)
        weights = load_file(checkpoint / "model.safetensors")
        for weight in weights.values():
            weight += torch.randn(weight.shape, generator=noise).to(weight)
        save_file(weights, draft / "model.safetensors", {"format": "pt"})
        return keep(draft, checkpoint.parent)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets in this process does not stay."""
    for name, value in IMPATIENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> School:
    home = home_with_mlflow("school")
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home.root))
    return School(home)
