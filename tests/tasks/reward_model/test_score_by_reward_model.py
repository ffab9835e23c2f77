"""The reward model scores the owner's groups; the table keeps the order of the rollouts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from conf.schema import TrainerConfig
from tasks.reward_model import process
from tasks.reward_model.learned_reward import OWNER
from tasks.reward_model.scoring import score_by_reward_model
from tasks.tables import LEARNED, PROMPTS, ROLLOUTS, read_table
from tests.tasks.doubles.tables import prompt, rollout, run_stage, write_stage


class Judge:
    """In place of the trainer's process: an answer's reward is the number of its tokens; NaN with token 33."""

    def __init__(self) -> None:
        self.asked: Any = None

    def call(self, function: Any, checkpoint: Path, groups: Any, config: TrainerConfig) -> list[list[float]]:
        assert function is process.score_answers
        self.asked = checkpoint, groups, config
        return [[float("nan") if 33 in answer else float(len(answer)) for answer in answers] for _, answers in groups]


def judged(home: Path, rows: list[dict[str, Any]], trainer: Any, *, failed: bool) -> pd.DataFrame:
    owner = {"kind": OWNER, "benchmark": None, "truth": None, "level": None, "entry": None}
    asked = [prompt("a", 0) | owner, prompt("b", 1) | owner, prompt("sum", 2)]
    prompts = write_stage(home / "select_prompts", {"prompts": (PROMPTS, asked)})
    sampled = write_stage(home / "sample", {"rollouts": (ROLLOUTS, rows)})
    scored = run_stage(
        score_by_reward_model,
        home / "score_by_reward_model",
        prompts=prompts,
        rollouts=sampled,
        reward_model=Path("cafe"),
        config=TrainerConfig(),
        failed=failed,
        trainer=trainer,
    )
    return read_table(scored.folder / "learned.parquet", LEARNED)


def test_groups_are_judged_together_and_rows_keep_their_order(tmp_path: Path) -> None:
    rows = [
        rollout("a", 0, 0, "xx"),
        rollout("b", 1, 0, "xxx"),
        rollout("a", 0, 1, "!"),  # token 33
        rollout("b", 1, 1, ""),  # without a token
        rollout("a", 0, 2, "x"),
        rollout("sum", 2, 0, "xx"),  # not the owner's
    ]
    trainer: Any = Judge()
    table = judged(tmp_path, rows, trainer, failed=False)
    assert table.problem_id.tolist() == ["a", "b", "a", "b", "a", "sum"]
    assert table["sample"].tolist() == [0, 0, 1, 1, 2, 0]
    assert [None if pd.isna(one) else one for one in table.learned] == [2.0, 3.0, None, None, 1.0, None]
    assert trainer.asked == (
        Path("cafe"),
        [([1, 2, 3], [[120, 120], [33], [120]]), ([1, 2, 3], [[120] * 3])],
        TrainerConfig(),
    )


def test_a_model_that_failed_is_not_asked_again(tmp_path: Path) -> None:
    rows = [rollout("a", 0, 0, "xx"), rollout("a", 0, 1, "x")]
    called: list[Any] = []
    trainer: Any = SimpleNamespace(call=called.append)
    table = judged(tmp_path, rows, trainer, failed=True)
    assert called == [process.release]
    assert table.learned.isna().tolist() == [True, True]
