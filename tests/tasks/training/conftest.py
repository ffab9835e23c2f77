"""A tiny student, and groups that it sampled."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.rollout import Rollout
from tasks.training import trainer_process
from tests.models.support.tiny import sampled_groups, write_tiny


@pytest.fixture(autouse=True)
def _no_trainer_is_left() -> Iterator[None]:
    """As in a new process."""
    yield
    trainer_process._trainer, trainer_process._held = None, None


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.fixture(scope="module")
def rollouts(student: Path) -> list[Rollout]:
    return sampled_groups(student, [[4, 1, 6], [2, 5], [7, 3]])
