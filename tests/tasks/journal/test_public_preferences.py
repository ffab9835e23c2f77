"""A public preference set goes the way of the owner's picks: import, freeze, reward model. Its rows are made up."""

import datetime
import random
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from tasks.journal.import_dataset import import_rows
from tasks.reward_model.fit import fit_reward_model
from tasks.stage import Artifact
from tasks.tables import HELD_OUT, read_table
from tests.models.support.tiny import trainer_config, write_tiny
from tests.models.support.tiny_picks import QUICK
from tests.rewards.local_hub import write_dataset
from tests.tasks.doubles.journals import freeze
from tests.tasks.doubles.workers import InProcessWorker

ROWS = 120
TODAY = datetime.date.today().isoformat()


def ultrafeedback() -> list[dict[str, Any]]:
    """Return rows in the format of openbmb/UltraFeedback; the best answer is the shortest of four, in random order."""
    chance, rows = random.Random(1), []
    for number in range(ROWS):
        scored = [
            {"model": "a", "response": "y" * length, "fine-grained_score": 13.0 - length, "overall_score": 1.0}
            for length in chance.sample(range(1, 13), 4)
        ]
        rows.append({"source": "made up", "instruction": f"{number} {chance.randrange(99)}", "completions": scored})
    return rows


def test_a_public_set_becomes_a_reward_model_that_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    student = write_tiny(tmp_path / "student")
    source = write_dataset(tmp_path / "UltraFeedback", {"default": {"train_prefs": ultrafeedback()}})
    imported = import_rows(tmp_path / "journal", source, split="train_prefs")
    assert (imported.added, imported.refused) == (ROWS, [])
    day = freeze(tmp_path, TODAY)
    counts = day.read_json("counts.json")
    assert (counts["preferences"]["new"], counts["quarantined"]) == (ROWS, 0)
    folder = tmp_path / "fit"
    folder.mkdir()
    fit_reward_model.write(
        folder,
        day=day,
        date=TODAY,
        checkpoint=student,
        config=QUICK,
        trainer_config=trainer_config(),
        student=StudentConfig(),
        seed=1,
        exam_questions=(),
        nights_with_smaller_holdout=(),
        broke=None,
        checkpoints=tmp_path / "checkpoints",
        trainer=InProcessWorker(),
    )
    outcome = Artifact(folder=folder, digest="").read_json("outcome.json")
    assert (outcome["serves"], outcome["reason"], outcome["picks"]) == (True, None, ROWS)
    assert outcome["chance"] == 0.25
    assert outcome["length"]["shortest_alone"] == 1.0  # the best answer is the one that the set ranks first
    held_out: Any = read_table(folder / "held_out.parquet", HELD_OUT)
    assert len(held_out) == outcome["held_out"] > 15
