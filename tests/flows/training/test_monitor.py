"""What the watch over the rounds says as they go."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.training.monitor import NightWatch
from tasks.stage import Artifact


def test_a_block_that_cannot_be_watched_is_told_of_as_it_begins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    night: Any = SimpleNamespace(folder=tmp_path, config=SimpleNamespace(alarms=SimpleNamespace(command=None)))
    tracking: Any = None
    watch, found = NightWatch(night, tracking), Artifact(folder=tmp_path, digest="")
    told = "from round 3 on the learned reward cannot be watched: the student ranks 4 of 20 held-out picks first"
    for right, number, said in ((4, 2, True), (4, 5, False), (5, 2, False)):  # later in the block it is no news
        caplog.clear()
        picks = [place < right for place in range(20)]
        (tmp_path / "ranking.json").write_text(json.dumps({"accuracy": right / 20, "right": picks}))
        watch.take_ranking(3, number, found)
        assert (told in caplog.text) is said
