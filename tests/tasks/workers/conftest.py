"""A Ray cluster on this machine: a head that samples nothing, and nodes that each offer an engine."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.hf.checkpoint import keep
from tests.models.support.tiny import write_tiny


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The cluster, which asks for this process's token."""
    with pytest.MonkeyPatch.context() as owners:
        owners.setenv("RAY_USAGE_STATS_ENABLED", "0")
        owners.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        owners.setenv("PYTHONPATH", os.getcwd())
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="session")
def add_node(ray_cluster: Any) -> Callable[[str], Any]:
    """Adds a node with an engine, by name."""

    def add(name: str) -> Any:
        return ray_cluster.add_node(num_cpus=0, resources={"engine": 1}, node_name=name, include_dashboard=False)

    return add


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint, named by its digest."""
    folder = tmp_path_factory.mktemp("checkpoints")
    write_tiny(folder / "draft")
    return keep(folder / "draft", folder)
