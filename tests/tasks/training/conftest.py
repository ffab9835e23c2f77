"""Groups that the tiny student sampled, and no trainer left in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.rollout import Rollout
from tasks.training import trainer_process
from tests.models.support.tiny import sampled_groups


@pytest.fixture(autouse=True)
def _no_trainer_is_left() -> Iterator[None]:
    """As in a new process."""
    yield
    trainer_process._trainer, trainer_process._held = None, None


@pytest.fixture(scope="module")
def rollouts(tiny_student: Path) -> list[Rollout]:
    return sampled_groups(tiny_student, [[4, 1, 6], [2, 5], [7, 3]])
