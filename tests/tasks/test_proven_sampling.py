"""An engine that cannot be proven is started anew, once."""

from typing import Any

import pytest

from models.probe import SyncError
from tasks import engine as in_engine
from tasks.proven_sampling import sample_proven


class Engine:
    """In the worker's place: its first so many calls are not proven."""

    def __init__(self, unproven: int) -> None:
        self.unproven, self.asked, self.closed = unproven, 0, 0
        self.losses: list[str] = []
        self.on_loss = self.losses.append

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        assert function is in_engine.sample
        self.asked += 1
        if self.asked <= self.unproven:
            raise SyncError("cafe is not what the engine samples from")
        return args, kwargs

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("unproven", [0, 1])
def test_it_is_asked_again_in_a_new_process(unproven: int) -> None:
    engine: Any = Engine(unproven)
    assert sample_proven(engine, "checkpoint", seed=1) == (("checkpoint",), {"seed": 1})
    assert (engine.asked, engine.closed, len(engine.losses)) == (1 + unproven, unproven, unproven)


def test_a_checkpoint_that_cannot_be_proven_ends_the_night() -> None:
    engine: Any = Engine(2)
    with pytest.raises(SyncError, match="cafe"):
        sample_proven(engine, "checkpoint", seed=1)
    assert (engine.asked, engine.closed) == (2, 1)
