"""A tiny student, and groups that it sampled."""

from pathlib import Path

import pytest

from models.rollout import Rollout
from tests.models.support.tiny import sampled_groups, write_tiny


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.fixture(scope="module")
def rollouts(student: Path) -> list[Rollout]:
    return sampled_groups(student, [[4, 1, 6], [2, 5], [7, 3]])
