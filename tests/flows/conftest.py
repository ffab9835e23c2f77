"""Fixtures of the tests of whole rounds."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.hf.checkpoint import keep, write_lineage
from tests.flows.rounds import School
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.workers import InProcessWorker


@pytest.fixture(scope="session")
def trainer() -> InProcessWorker:
    """The trainer, in this process, which has imported its libraries already."""
    return InProcessWorker()


@pytest.fixture(scope="module")
def school(
    tmp_path_factory: pytest.TempPathFactory, prefect_server: None, _empty_mlflow: Path, trainer: InProcessWorker
) -> Iterator[School]:
    """A tiny student's nights of one test file."""
    root = tmp_path_factory.mktemp("rounds")
    draft = write_tiny(root / "draft")
    write_lineage(draft, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield School(root, _empty_mlflow, keep(draft, root / "students"), trainer)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which the clock of the night's hours is fast."""
    fast, now = [0.0], time.time

    class Clock:
        @staticmethod
        def time() -> float:
            return now() + fast[0]

    monkeypatch.setattr("flows.run.budget.time", Clock)
    monkeypatch.setattr("flows.run.dates.time", Clock)
    return fast
