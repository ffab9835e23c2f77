"""Students that the tests of several stages share. More doubles: `tests/tasks/doubles/`."""

from pathlib import Path

import pytest

from tests.tasks.doubles.student import write_student


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student without a model, whose tokens are single bytes."""
    return write_student(tmp_path_factory.mktemp("students") / "base")


@pytest.fixture(scope="session")
def tiny_student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student with a real model of a few thousand weights."""
    from tests.models.support.tiny import write_tiny  # imports torch, which most tests here do without

    return write_tiny(tmp_path_factory.mktemp("students") / "tiny")
