"""The reward model in the trainer's process: what is fitted, what is kept, and that what serves was evaluated."""

from pathlib import Path

import pytest

from models.hf.checkpoint import is_intact, learned, parent_of
from models.lessons.ranking import Ranking, rank
from models.reward_model import HEAD, RewardModel
from tasks.reward_model import process
from tasks.reward_model.process import run_fit, score_answers
from tests.models.support.tiny import trainer_config
from tests.models.support.tiny_picks import tiny_picks

TRAINER = trainer_config()
HELD_OUT = tiny_picks(60, seed=2)
NAMES = ["one", "two"]  # of the lessons that were fitted
GROUPS = [(list(pick.prompt), [list(answer) for answer in pick.answers]) for pick in HELD_OUT]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def fitted(tiny_student: Path, checkpoints: Path) -> tuple[Ranking, str | None]:
    return run_fit(tiny_student, tiny_picks(120, seed=1), NAMES, HELD_OUT, TRAINER, checkpoints)


@pytest.fixture(scope="module")
def checkpoint(fitted: tuple[Ranking, str | None], checkpoints: Path) -> Path:
    assert fitted[1] is not None
    return checkpoints / fitted[1]


def test_a_fit_has_its_lineage_and_is_the_model_that_was_evaluated(
    tiny_student: Path, fitted: tuple[Ranking, str | None], checkpoint: Path, checkpoints: Path
) -> None:
    ranking, _ = fitted
    assert ranking.accuracy.value > 0.8
    assert is_intact(checkpoint)
    assert parent_of(checkpoint) == tiny_student.name
    assert learned(checkpoint) == {*NAMES}
    assert (checkpoint / HEAD).exists()
    assert not (checkpoints / "draft").exists()
    assert rank(score_answers(checkpoint, GROUPS, TRAINER), HELD_OUT) == ranking


def test_the_judge_stays_loaded_and_is_the_same_anywhere(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = GROUPS[:5]
    first = score_answers(checkpoint, groups, TRAINER)
    loads = []
    load = RewardModel.load
    monkeypatch.setattr(RewardModel, "load", lambda *given: loads.append(given) or load(*given))
    assert score_answers(checkpoint, groups, TRAINER) == first
    assert loads == []
    process.release()  # as a new process starts
    assert score_answers(checkpoint, groups, TRAINER) == first
    assert len(loads) == 1
