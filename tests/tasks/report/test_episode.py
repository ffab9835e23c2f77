"""An episode in the report: the candidate's median, turn by turn, as it was played."""

import json
from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.environments.ants import Ants
from tasks.report.episode import shown_episode
from tasks.tables import EVALUATIONS
from tests.tasks.doubles.exam import row
from tests.tasks.doubles.tables import write_stage

UP = ["ACT: MOVE up", "nonsense"]


def write_ants(night: Path) -> None:
    """A night whose candidate played three layouts, in two turns each, and two on which the grader failed."""
    (night / "config.yaml").write_text(Path("conf/ants.yaml").read_text())
    ids = [problem.problem_id for problem in Ants().problems("test")[:5]]
    rows = [
        row(problem_id, benchmark="ants-0", value=value, text=json.dumps(UP), turns=2, valid=0.5)
        for problem_id, value in zip(ids, (0.5, 0.0, 1.0, None, None), strict=True)
    ]
    write_stage(night / "evaluate" / "candidate", {"evaluations": (EVALUATIONS, rows)})


def test_the_median_episode_turn_by_turn(tmp_path: Path) -> None:
    write_ants(tmp_path)
    shown = shown_episode(tmp_path)
    assert shown is not None
    assert (shown.problem_id, shown.value) == (Ants().problems("test")[0].problem_id, 0.5)
    assert [(turn.text, turn.valid) for _, turn in shown.frames] == [(UP[0], True), (UP[1], False)]
    assert shown.frames[1][1].parts == {"invalid": -0.02}
    first, second = (drawn for drawn, _ in shown.frames)
    assert first.startswith("<svg ")
    assert second.startswith("<svg ")
    assert first != second


def test_a_night_of_single_answers_has_none(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(Path("conf/starter.yaml").read_text())
    write_stage(tmp_path / "evaluate" / "candidate", {"evaluations": (EVALUATIONS, [row("a")])})
    assert shown_episode(tmp_path) is None


def test_an_environment_that_fails_costs_only_the_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise InputError("ants: the environment failed")

    write_ants(tmp_path)
    monkeypatch.setattr("tasks.report.episode.replay", fail)
    assert shown_episode(tmp_path) is None
