"""The classroom's engine: its end is noticed even while nobody asks."""

import os
import signal
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from flows.teaching import engine
from tasks.workers.worker import WorkerEndedError
from tests.flows.teaching.conftest import Do
from tests.waiting import awaited


def test_an_engine_that_ended_while_idle_is_not_running(
    do: Do, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.writing, "load", repr)  # of a champion that the test does not need
    here = engine.Engine(tmp_path, load_night(STARTER, []), tmp_path, tmp_path / "teach.log")
    try:
        assert here.wait_until_healthy(lambda: True)
        assert here.running
        (process,) = here._worker._pool._processes  # pyrefly: ignore[missing-attribute]
        os.kill(process, signal.SIGKILL)  # it has no call to answer
        awaited(lambda: not here.running)
        with pytest.raises(WorkerEndedError, match="ask again in a moment"):
            do(here.use_adapter(None))
        assert not here.running  # the call has started no other
    finally:
        here.end()
