"""An engine whose weights are not proven is restarted, once."""

import pytest

from models.engine.sync_probe import SyncError
from tasks.rollouts import engine_process
from tasks.rollouts.sample import call_proven
from tests.tasks.doubles.workers import InProcessWorker


class UnprovenEngine(InProcessWorker):
    """An engine whose first `unproven` processes do not hold the checkpoint's weights."""

    def __init__(self, unproven: int) -> None:
        super().__init__()
        self.unproven, self.processes, self.losses = unproven, 1, list[str]()
        self.on_loss = self.losses.append

    def call(self, function: object, *arguments: object, **options: object) -> int:
        if self.processes <= self.unproven:
            raise SyncError("cafe is not what the engine samples from")
        return self.processes

    def close(self) -> None:
        self.processes += 1


@pytest.mark.parametrize("unproven", [0, 1])
def test_a_new_process_is_asked_after_an_unproven_sync(unproven: int) -> None:
    engine = UnprovenEngine(unproven)
    assert call_proven(engine, engine_process.sample) == 1 + unproven  # pyright: ignore
    assert engine.losses == ["the engine was restarted: cafe is not what the engine samples from"] * unproven


def test_a_checkpoint_that_cannot_be_proven_ends_the_night() -> None:
    engine = UnprovenEngine(2)
    with pytest.raises(SyncError, match="cafe"):
        call_proven(engine, engine_process.sample)  # pyright: ignore
    assert engine.processes == 2
