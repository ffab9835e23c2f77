"""Rehearsal: the student's own answers to everyday prompts, equally many to each."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, StudentConfig
from models.hf.loading import load_tokenizer
from tasks.distillation.rehearsal import PROMPTS, rehearsal
from tasks.rollouts.verified import Player
from tasks.tables import read_rollouts
from tests.tasks.doubles.exam import TableEngine

BENCHMARKS = [[f"{n} {sign} 5?" for n in range(200)] for sign in "+-"]
EVERYDAY = PROMPTS.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("practised", [(), ("7 + 5?", "7 + 6?", "7" * 5000), (*BENCHMARKS[0], *BENCHMARKS[1])])
@pytest.mark.parametrize("count", [10, 250])
def test_each_prompt_is_answered_equally_often(
    tmp_path: Path, student: Path, count: int, practised: tuple[str, ...]
) -> None:
    engine: Any = TableEngine(student, {"": "x"})
    rehearsal.write(
        tmp_path,
        practised=practised,
        count=count,
        player=Player(student, StudentConfig(), EngineConfig(), engine, 8),
        seed=1,
    )
    rollouts = read_rollouts(tmp_path / "rollouts.parquet")
    assert len(rollouts) == count
    tokenizer: Any = load_tokenizer(student)
    asked = Counter(tokenizer.decode(rollout.prompt_token_ids) for rollout in rollouts)
    problems = {f"User: {prompt}\nAssistant:" for prompt in practised if len(prompt) < 5000}
    rehearsed = {prompt: asked.pop(prompt) for prompt in problems & asked.keys()}
    assert sum(rehearsed.values()) == (count // 2 if practised else 0)
    assert len(rehearsed) == min(count // 2, len(problems))
    assert max(rehearsed.values(), default=0) - min(rehearsed.values(), default=0) <= 1
    assert all((sign in "".join(rehearsed)) == (sign in "".join(practised)) for sign in "+-")
    assert max(asked.values()) - min(asked.values()) <= 1
    assert len(asked) == min(asked.total(), len(EVERYDAY))
    assert asked.keys() <= {f"User: {prompt}\nAssistant:" for prompt in EVERYDAY}
    assert (engine.calls, engine.asked) == (1, [])  # no greedy call
