"""The learned reward's rows in the report."""

import json
import math
from pathlib import Path

from tasks.learned_rounds import learned_rounds
from tasks.stage import commit


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
