"""An engine that cannot be proven is started anew, once: with real child processes, in which only vLLM is left out."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models.engine.sync_probe import SyncError
from tasks.rollouts import sample as proven_sampling
from tasks.rollouts.sample import sample_proven
from tasks.workers import Worker


def sample(notes: Path, unproven: int) -> Any:
    """In the child: the first so many calls are not proven. Each notes its process."""
    with notes.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if len(notes.read_text().split()) <= unproven:
        raise SyncError("cafe is not what the engine samples from")
    return os.getpid()


@pytest.fixture
def losses() -> list[str]:
    return []


@pytest.fixture
def engine(losses: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(proven_sampling, "in_engine", SimpleNamespace(sample=sample))
    worker = Worker("engine", on_loss=losses.append)
    yield worker
    worker.end(grace=0)


@pytest.mark.parametrize("unproven", [0, 1])
def test_it_is_asked_again_in_a_new_process(engine: Worker, losses: list[str], tmp_path: Path, unproven: int) -> None:
    answered = sample_proven(engine, tmp_path / "notes", unproven)
    asked = (tmp_path / "notes").read_text().split()
    assert str(answered) == asked[-1]
    assert len(asked) == len(set(asked)) == 1 + unproven
    assert len(losses) == unproven


def test_a_checkpoint_that_cannot_be_proven_ends_the_night(engine: Worker, tmp_path: Path) -> None:
    with pytest.raises(SyncError, match="cafe"):
        sample_proven(engine, tmp_path / "notes", 2)
    assert len(set((tmp_path / "notes").read_text().split())) == 2
