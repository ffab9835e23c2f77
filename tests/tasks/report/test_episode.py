"""An episode in the report: the candidate's median, turn by turn, as it was played."""

import json
from pathlib import Path

import pytest

from rewards.environments.ants import Ants
from tasks.report.episode import shown_episode
from tasks.tables import EVALUATIONS
from tests.tasks.doubles.exam import row
from tests.tasks.doubles.tables import write_stage

UP = ["ACT: MOVE up", "nonsense"]


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A night whose candidate played three layouts, in two turns each."""
    (tmp_path / "config.yaml").write_text(Path("conf/ants.yaml").read_text())
    ids = [problem.problem_id for problem in Ants().problems("test")[:3]]
    values = zip(ids, (0.5, 0.0, 1.0), strict=True)
    rows = [
        row(problem_id, benchmark="ants-0", value=value, text=json.dumps(UP), turns=2, valid=0.5)
        for problem_id, value in values
    ]
    write_stage(tmp_path / "evaluate" / "candidate", {"evaluations": (EVALUATIONS, rows)})
    return tmp_path


def test_the_median_episode_turn_by_turn(night: Path) -> None:
    shown = shown_episode(night)
    assert shown is not None
    assert (shown.problem_id, shown.value) == (Ants().problems("test")[0].problem_id, 0.5)
    assert [frame.text for frame in shown.frames] == UP
    assert [frame.valid for frame in shown.frames] == [True, False]
    assert shown.frames[1].parts == {"invalid": -0.02}
    assert all(frame.drawing.startswith("<svg ") for frame in shown.frames)
    assert shown.frames[0].drawing != shown.frames[1].drawing


def test_a_night_of_single_answers_has_none(tmp_path: Path) -> None:
    write_stage(tmp_path / "evaluate" / "candidate", {"evaluations": (EVALUATIONS, [row("a")])})
    assert shown_episode(tmp_path) is None
