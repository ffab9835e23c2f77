"""What the monitor of the rounds logs."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.training.monitor import Monitor
from tasks.stage import Artifact


def test_an_unwatchable_block_is_logged_when_it_begins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    night: Any = SimpleNamespace(folder=tmp_path, config=SimpleNamespace(alarms=SimpleNamespace(command=None)))
    tracking: Any = None
    monitor, ranking = Monitor(night, tracking), Artifact(folder=tmp_path, digest="")
    warning = "from round 3 on the learned reward cannot be watched: the student ranks 4 of 20 held-out picks first"
    for right, number, logged in ((4, 2, True), (4, 5, False), (5, 2, False)):  # once, before the block
        caplog.clear()
        picks = [pick < right for pick in range(20)]
        (tmp_path / "ranking.json").write_text(json.dumps({"accuracy": right / 20, "right": picks}))
        monitor.add_ranking(3, number, ranking)
        assert (warning in caplog.text) is logged
