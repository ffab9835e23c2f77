"""Advantages over a group's mean; null for what was not graded."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from conf.schema import GrpoConfig
from tasks.rollouts.advantages import credit
from tasks.tables import ADVANTAGES, ROLLOUTS, SCORES, read_table
from tests.tasks.doubles.tables import rollout, run_stage, score, write_stage


def run(
    tmp_path: Path, rows: list[dict[str, Any]], size: int, *, lengths: Sequence[int] = (), cut: int = 100, **grpo: Any
) -> pd.DataFrame:
    """Credit completions of 10 tokens, or of these lengths; those of `cut` tokens were cut."""
    scores = write_stage(tmp_path / "score", {"scores": (SCORES, rows)})
    sampled = [
        rollout(row["problem_id"], row["group"], row["sample"], "x" * length)
        | {"finish_reason": "length" if length == cut else "stop"}
        for row, length in zip(rows, lengths or [10] * len(rows), strict=True)
    ]
    rollouts = write_stage(tmp_path / "sample", {"rollouts": (ROLLOUTS, sampled[::-1])})
    config = GrpoConfig(group_size=size, **grpo)
    run_stage(credit, tmp_path / "credit", scores=scores, rollouts=rollouts, grpo=config)
    return read_table(tmp_path / "credit" / "advantages.parquet", ADVANTAGES)


def by_sample(table: pd.DataFrame) -> dict[tuple[int, int], float]:
    rows: list[Any] = table.to_dict("records")
    return {(row["group"], row["sample"]): row["advantage"] for row in rows}


def test_half_of_each_group_is_trained_on(tmp_path: Path) -> None:
    """The most varied, with advantages over each other; the others' are null, as those that were not graded."""
    rewards = [[1.0, 0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, None, 0.0], [1.0] * 6, [None] * 6]
    rows = [score(f"p{g}", g, s, reward) for g, group in enumerate(rewards) for s, reward in enumerate(group)]
    found = by_sample(run(tmp_path, rows, 6, train_on=4))
    kept = {key: value for key, value in found.items() if not math.isnan(value)}
    of_first = {(0, 0): 0.5, (0, 1): -0.5, (0, 2): -0.5, (0, 4): 0.5}
    of_second = {(1, 0): -0.25, (1, 1): -0.25, (1, 2): -0.25, (1, 3): 0.75}
    assert kept == of_first | of_second | {(2, sample): 0.0 for sample in range(4)}
    assert json.loads((tmp_path / "credit/signal.json").read_text()) == {"groups": 4, "with_signal": 2}


def test_advantages_by_hand_of_rows_in_any_order(tmp_path: Path) -> None:
    rows = [score("b", 1, 1, 1.0), score("a", 0, 1, 1.0), score("b", 1, 0, 1.0), score("a", 0, 0, 0.0)]
    table = run(tmp_path, rows, 2)
    assert by_sample(table) == {(0, 0): -0.5, (0, 1): 0.5, (1, 0): 0.0, (1, 1): 0.0}
    assert dict(zip(table.group, table.problem_id, strict=True)) == {0: "a", 1: "b"}


def test_which_groups_have_a_signal(tmp_path: Path) -> None:
    """One right and one wrong; all right; one graded; none graded; and one whose completions are all empty."""
    rewards = [[1.0, 0.0], [1.0, 1.0], [None, 1.0], [None, None], [1.0, 0.0]]
    rows = [score(f"p{g}", g, s, reward) for g, group in enumerate(rewards) for s, reward in enumerate(group)]
    run(tmp_path, rows, 2, lengths=[5] * 8 + [0, 0])
    assert json.loads((tmp_path / "credit/signal.json").read_text()) == {"groups": 5, "with_signal": 1}


def test_a_group_whose_signal_is_masked_has_none(tmp_path: Path) -> None:
    rows = [score("a", 0, sample, reward) for sample, reward in enumerate([1.0, 0.0, 0.0, 0.0])]
    run(tmp_path, rows, 4, lengths=[20, 5, 5, 5], cut=20, overlong="mask", max_completion_tokens=20)
    assert json.loads((tmp_path / "credit/signal.json").read_text()) == {"groups": 1, "with_signal": 0}
