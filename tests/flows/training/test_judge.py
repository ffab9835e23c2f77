"""A judge in a folder: the night serves it itself, on a socket file, and ends it."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.judge import Judge
from models.hf.checkpoint import keep, write_lineage
from tasks.journal.tables import HELD_OUT
from tasks.monitoring.incidents import incidents
from tasks.reward_model.judge_stages import examine_judge
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.tables import write_stage

DATE, PICKS = "2026-11-20", 2


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(Home(tmp_path / "school"), DATE, load_night(STARTER, ["judge={checkpoint: champion}"]))


def examined(judge: Judge, folder: Path, question: str) -> dict[str, Any]:
    """Let the judge rank the answers of held-out picks."""
    messages = json.dumps([{"role": "user", "content": question}])
    rows = [
        {"messages": messages, "responses": json.dumps(["yes", f"no {n}"]), "chosen": 0, "generated": False}
        for n in range(PICKS)
    ]
    held_out = write_stage(folder / "fit_reward_model", {"held_out": (HELD_OUT, rows)})
    (folder / "examined").mkdir()
    examine_judge.write(folder / "examined", reward_model=held_out, picks=100, **judge.arguments())
    return json.loads((folder / "examined" / "outcome.json").read_text())


@pytest.mark.full
def test_the_champion_judges_as_long_as_the_night_lasts(tmp_path: Path, night: Night) -> None:
    """This one writes noise, which ranks nothing."""
    night.home.checkpoints.mkdir(parents=True)
    draft = write_tiny(night.home.checkpoints / "draft", head_dim=32, context=4096)
    write_lineage(draft, None)
    champion = keep(draft, night.home.checkpoints)
    assert night.config.judge
    judge = Judge(night, night.config.judge, champion)
    assert judge.server
    try:
        outcome = examined(judge, tmp_path / "up", "Is it?")
        assert (outcome["judge"], outcome["asked"], outcome["judged"]) == (champion.name, 3 * PICKS, 0)
        assert outcome["failed"] == {}
        assert outcome["tokens"] > 0
        assert not outcome["serves"]

        judge.server.process.kill()
        judge.server.process.wait()
        outcome = examined(judge, tmp_path / "down", "Is it still?")
        assert outcome["stopped"] == "no connection"
        assert "the judge: vLLM does not start" in incidents(night.folder)[-1]
    finally:
        night.close()
    assert not judge.server.running
