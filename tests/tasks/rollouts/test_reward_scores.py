"""The learned reward of each completion: group by group to the model, row by row in the table."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from conf.schema import TrainerConfig
from tasks.reward_model import process
from tasks.rollouts.reward_scores import judge
from tasks.tables import LEARNED, ROLLOUTS, read_table
from tests.tasks.doubles.tables import rollout, write_stage


class Judge:
    """In the place of the trainer's process: an answer's reward is the number of its tokens."""

    def __init__(self) -> None:
        self.asked: Any = None

    def call(self, function: Any, checkpoint: Path, groups: Any, config: TrainerConfig) -> list[list[float]]:
        assert function is process.judge
        self.asked = checkpoint, groups, config
        return [[float("nan") if 33 in answer else float(len(answer)) for answer in answers] for _, answers in groups]


def judged(home: Path, rows: list[dict[str, Any]], trainer: Any, *, broke: bool) -> pd.DataFrame:
    """What the stage writes of these rollouts."""
    sampled = write_stage(home / "sample", {"rollouts": (ROLLOUTS, rows)})
    (home / "judge").mkdir()
    judge.write(
        home / "judge",
        rollouts=sampled,
        reward_model=Path("cafe"),
        config=TrainerConfig(),
        broke=broke,
        trainer=trainer,
    )
    return read_table(home / "judge" / "learned.parquet", LEARNED)


def test_groups_are_judged_together_and_rows_keep_their_order(tmp_path: Path) -> None:
    rows = [
        rollout("a", 0, 0, "xx"),
        rollout("b", 1, 0, "xxx"),
        rollout("a", 0, 1, "!"),  # 33: no number comes of it
        rollout("b", 1, 1, ""),  # no token at all
        rollout("a", 0, 2, "x"),
    ]
    trainer: Any = Judge()
    table = judged(tmp_path, rows, trainer, broke=False)
    assert list(zip(table.problem_id, table.group, table["sample"], strict=True)) == [
        ("a", 0, 0),
        ("b", 1, 0),
        ("a", 0, 1),
        ("b", 1, 1),
        ("a", 0, 2),
    ]
    assert [None if pd.isna(one) else one for one in table.learned] == [2.0, 3.0, None, None, 1.0]
    assert trainer.asked == (
        Path("cafe"),
        [([1, 2, 3], [[120, 120], [33], [120]]), ([1, 2, 3], [[120] * 3])],
        TrainerConfig(),
    )


def test_a_model_that_could_not_judge_is_not_asked_again(tmp_path: Path) -> None:
    rows = [rollout("a", 0, 0, "xx"), rollout("a", 0, 1, "x")]
    called: list[Any] = []
    trainer: Any = SimpleNamespace(call=called.append)
    table = judged(tmp_path, rows, trainer, broke=True)
    assert called == [process.let_go]
    assert table.learned.isna().tolist() == [True, True]
