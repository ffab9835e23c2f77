"""The stage that fits the reward model: it serves, or is refused with a reason, whatever the day holds."""

from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.sections.lessons import RewardModelConfig
from tasks.journal.tables import CORRECTIONS, HELD_OUT, PREFERENCES
from tasks.reward_model.fit import figures, fit_reward_model
from tasks.tables import read_table
from tasks.workers.worker import HoursOverError
from tests.models.support.tiny import trainer_config
from tests.tasks.doubles.picks import preference_rows
from tests.tasks.doubles.tables import run_stage, write_stage
from tests.tasks.doubles.workers import FailingWorker, InProcessWorker

DEFAULTS = RewardModelConfig()
ONE_SIDE = "all picks are on one side of the split by prompt: more different prompts are needed"


def run(
    tmp_path: Path,
    student: Path,
    rows: list[dict[str, Any]],
    config: RewardModelConfig | None = DEFAULTS,
    worker: InProcessWorker | None = None,
    broke: str | None = None,
) -> tuple[dict[str, Any], Path, int]:
    """Run the stage; return its outcome and folder, and the number of calls to the trainer's process."""
    tables = {"preferences": (PREFERENCES, rows), "corrections": (CORRECTIONS, [])}
    worker = worker or InProcessWorker()
    fitted = run_stage(
        fit_reward_model,
        tmp_path / "fit",
        day=write_stage(tmp_path / "freeze_journal", tables),
        date="2026-11-20",
        checkpoint=student,
        config=config,
        trainer_config=trainer_config(),
        student=StudentConfig(),
        exam_questions=(),
        broke=broke,
        checkpoints=tmp_path / "checkpoints",
        trainer=worker,
    )
    return fitted.read_json("outcome.json"), fitted.folder, len(worker.functions)


def test_picks_without_a_taste_are_refused_with_the_numbers(tmp_path: Path, tiny_student: Path) -> None:
    rows = [row | {"chosen": (number * 7 + 1) % 5} for number, row in enumerate(preference_rows(120))]
    outcome, folder, calls = run(tmp_path, tiny_student, rows)
    assert (outcome["serves"], outcome["checkpoint"], calls) == (False, None, 1)
    assert f"on {outcome['held_out']} held-out picks it is right" in outcome["reason"]
    assert not (folder / "checkpoint.txt").exists()
    assert not list((tmp_path / "checkpoints").iterdir())


@pytest.mark.parametrize("config", [RewardModelConfig(min_picks=1000), None])
def test_the_held_out_table_has_the_picks_as_they_were_shown(
    tmp_path: Path, tiny_student: Path, config: RewardModelConfig | None
) -> None:
    """Also without a reward model: they judge the student, too."""
    rows = preference_rows(40)
    _, folder, _ = run(tmp_path, tiny_student, rows, config)
    held_out: Any = read_table(folder / "held_out.parquet", HELD_OUT)
    shown = {row["messages"]: row for row in rows}
    assert 4 < len(held_out) < 25
    for row in held_out.itertuples():
        assert (row.responses, row.chosen) == (shown[row.messages]["responses"], shown[row.messages]["chosen"])


@pytest.mark.parametrize(
    ("rows", "options", "reason"),
    [
        ([], {}, "with fewer than 30 usable picks none is fitted"),
        (preference_rows(29), {}, "with fewer than 30 usable picks none is fitted"),
        (preference_rows(1) * 40, {}, ONE_SIDE),
        (preference_rows(40), {"config": None}, ""),
        (preference_rows(40), {"worker": FailingWorker(HoursOverError("the hours were over"))}, "the hours were over"),
        (preference_rows(40), {"broke": "OutOfMemoryError: 12 GB"}, "it could not be fitted: OutOfMemoryError: 12 GB"),
    ],
)
def test_a_refusal(
    tmp_path: Path, tiny_student: Path, rows: list[dict[str, Any]], options: dict[str, Any], reason: str
) -> None:
    """Before any fit, or because it took longer than the night; what failed before is not tried again."""
    outcome, folder, calls = run(tmp_path, tiny_student, rows, **options)
    assert (outcome["serves"], outcome["checkpoint"], calls) == (False, None, int("worker" in options))
    assert outcome["reason"] == reason
    assert outcome["broke"] == options.get("broke")
    assert not (folder / "checkpoint.txt").exists()
    assert figures(outcome)["reward_model/serves"] == 0
    held_out = read_table(folder / "held_out.parquet", HELD_OUT)
    assert outcome["held_out"] == len(held_out)
