"""Rehearsal: the student's own answers to everyday prompts, equally many to each."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, StudentConfig
from models.hf.loading import load_tokenizer
from models.rollout import Rollout
from tasks.distillation.rehearsal import PROMPTS, rehearsal
from tasks.tables import read_rollouts
from tasks.workers import engine_process

EVERYDAY = PROMPTS.read_text(encoding="utf-8").splitlines()


class Engine:
    """Gives numbered answers, and must sleep in the end."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.calls.append(function)
        if function is engine_process.sleep:
            return None
        checkpoint, _, prompts, size = arguments
        assert options["temperature"] == 1.0
        return [
            [Rollout("", n, s, prompt, [s], [0.0], [True], "stop", "", checkpoint.name) for s in range(size)]
            for n, prompt in enumerate(prompts)
        ], {}


@pytest.mark.parametrize("count", [10, 250])
def test_each_prompt_is_answered_equally_often(tmp_path: Path, student: Path, count: int) -> None:
    engine: Any = Engine()
    rehearsal.write(
        tmp_path,
        count=count,
        checkpoint=student,
        student=StudentConfig(),
        config=EngineConfig(),
        max_completion_tokens=8,
        seed=1,
        engine=engine,
    )
    rollouts = read_rollouts(tmp_path / "rollouts.parquet")
    assert len(rollouts) == count
    tokenizer: Any = load_tokenizer(student)
    asked = Counter(tokenizer.decode(rollout.prompt_token_ids) for rollout in rollouts)
    assert max(asked.values()) - min(asked.values()) <= 1
    assert len(asked) == min(count, len(EVERYDAY))
    assert asked.keys() <= {f"User: {prompt}\nAssistant:" for prompt in EVERYDAY}
    assert engine.calls == [engine_process.sample, engine_process.sleep]


def test_the_prompts_differ() -> None:
    assert len(EVERYDAY) == len({*EVERYDAY}) == 96
