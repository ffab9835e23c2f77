"""The learned reward's rows in the report."""

import json
import math
from pathlib import Path

import pytest

from tasks.report.page import render
from tasks.report.sections import learned_rounds
from tasks.stage import commit
from tests.tasks.night_folder import write_night


def learnt(night: Path, number: int, **figures: float) -> None:
    """A round's figures, each under `reward/`."""
    folder = night / f"round-{number:02d}" / "checkpoint"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps({f"reward/{name}": value for name, value in figures.items()}))
    commit(folder, "checkpoint", {}, 1.0)


def test_a_round_whose_answers_were_all_cut_has_its_row(tmp_path: Path) -> None:
    learnt(tmp_path, 1, learned_z=0.0, language=1.0)
    learnt(tmp_path, 2, learned=0.5, tie_breaker=0.0)
    learnt(tmp_path, 3, correct=0.5)  # the learned reward was not used any more
    found = learned_rounds(tmp_path)
    assert [row.number for row in found] == [1, 2]
    assert math.isnan(found[0].reward)
    assert found[1].reward == 0.5


@pytest.mark.parametrize(("right", "said"), [(4, True), (5, False)])
def test_a_block_that_cannot_be_watched_is_told_of(tmp_path: Path, right: int, said: bool) -> None:
    night = tmp_path / "2026-11-20"
    summary = write_night(night, rounds=1)
    metrics = night / "round-01" / "checkpoint" / "metrics.json"
    metrics.write_text(json.dumps(json.loads(metrics.read_text()) | {"reward/learned": 0.5, "reward/learned_z": 0.0}))
    ranking = night / "rank_picks"
    ranking.mkdir()
    picks = [place < right for place in range(20)]
    (ranking / "ranking.json").write_text(json.dumps({"accuracy": right / 20, "right": picks}))
    commit(ranking, "rank_picks", {}, 1.0)
    told = "From round 1 on the learned reward cannot be watched: the student ranks 4 of 20 held-out picks first"
    assert (told in render(night, summary)) is said
