"""What the student practised, read from the tables of tonight's and of earlier rounds."""

from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, frozen_yaml, load_night
from tasks.distillation.attempts import earlier_rounds, practised_problems
from tasks.tables import ROLLOUTS
from tests.damage import flip_a_bit
from tests.tasks.doubles.tables import RIGHT, WRONG, rollout, write_round, write_stage

HARD = [RIGHT, WRONG, WRONG]


def problems_of(rounds: list[Path], *, answers: bool) -> list[str]:
    return [practised.problem.problem_id for practised in practised_problems(rounds, answers=answers)]


@pytest.mark.parametrize("table", ["score/scores", "select_prompts/prompts", "sample/rollouts"])
def test_a_round_with_a_flipped_bit_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture, table: str) -> None:
    rounds = [tmp_path / f"round-0{number}" for number in (1, 2)]
    for number, folder in enumerate(rounds, start=1):
        write_round(folder, {f"problem {number}": [("an answer that is right", 1.0), WRONG]})
    damaged = rounds[1] / f"{table}.parquet"
    flip_a_bit(damaged)
    assert problems_of(rounds, answers=True) == ["problem 1"]
    assert caplog.messages == [f"{damaged} is damaged: this round is not used for lessons"]


def test_uncommitted_and_pruned_rounds_are_skipped(tmp_path: Path) -> None:
    rounds = [tmp_path / f"round-0{number}" for number in (1, 2, 3)]
    for number, folder in enumerate(rounds, start=1):
        write_round(folder, {f"problem {number}": HARD})
    (rounds[0] / "score/manifest.json").unlink()  # never committed
    (rounds[1] / "sample/rollouts.parquet").unlink()  # pruned
    assert problems_of(rounds, answers=True) == ["problem 3"]
    assert problems_of(rounds, answers=False) == ["problem 2", "problem 3"]


@pytest.mark.parametrize("changes", [{"benchmark": None}, {"truth": None}, {"hint": "12 - 8"}])
@pytest.mark.parametrize("answers", [False, True])
def test_neither_what_has_no_truth_nor_what_follows_a_hint_counts(
    tmp_path: Path, changes: dict[str, Any], answers: bool
) -> None:
    write_round(tmp_path, {"problem": HARD}, **changes)
    assert problems_of([tmp_path], answers=answers) == []


def test_truncated_answers_are_not_correct_answers(tmp_path: Path) -> None:
    write_round(tmp_path, {"problem": HARD})
    (tmp_path / "sample/manifest.json").unlink()
    rows = [rollout("problem", 0, sample, "right") | {"finish_reason": "length"} for sample in range(3)]
    write_stage(tmp_path / "sample", {"rollouts": (ROLLOUTS, rows)})
    (practised,) = practised_problems([tmp_path], answers=True)
    assert (practised.tried, practised.solved, practised.correct) == (3, 1, [])


def test_the_last_seven_nights_of_a_model_come_in_order(tmp_path: Path) -> None:
    for day in range(10, 20):
        (tmp_path / f"2026-11-{day}/round-01").mkdir(parents=True)
    (tmp_path / "2026-11-17/config.yaml").write_text(frozen_yaml(load_night(STARTER)))
    (tmp_path / "2026-11-18/config.yaml").write_text(frozen_yaml(load_night(STARTER, ["name=another"])))
    nights = [folder.parent.name for folder in earlier_rounds(tmp_path, "2026-11-19", "starter")]
    assert nights == [f"2026-11-{day}" for day in range(11, 18)]
