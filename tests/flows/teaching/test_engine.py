"""The classroom's engine: its end is noticed even while nobody asks."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from conf.load import STARTER, load_night
from flows.teaching import engine
from tasks.workers.worker import WorkerEndedError
from tests.flows.teaching.conftest import Do


def test_an_engine_that_ended_while_idle_is_not_running(
    do: Do, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Mock(running=True, lost=False)
    monkeypatch.setattr(engine, "Worker", lambda *_: worker)
    here = engine.Engine(tmp_path, load_night(STARTER, []), tmp_path, tmp_path / "teach.log")
    assert here.running
    worker.lost = True  # it died, and had no call to answer
    assert not here.running
    with pytest.raises(WorkerEndedError, match="ask again in a moment"):
        do(here.use_adapter(None))
    worker.call.assert_not_called()
