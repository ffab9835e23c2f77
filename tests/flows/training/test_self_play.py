"""Rounds of self-play: the real stages and trainer, with a script in place of the engine."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.rollout import Rollout
from rewards.arithmetic import Arithmetic
from tasks.tables import PROMPTS, PROPOSALS, read_table
from tests.flows.rounds import School, ScriptedEngine, rollout

SETTINGS = [
    "stages=[{self_play: 2}]",
    "benchmarks=[{name: arithmetic}]",
    "grpo.group_size=4",
    "grpo.prompts_per_round=4",
    "grpo.min_useful_groups=1",
    "self_play={proposals: 8, train: both}",
]


def sums() -> Iterator[str]:
    for first in range(20, 100):
        for second in range(2, 10):
            if Arithmetic().proposed(f"{first} + {second} - 1"):
                yield f"{first} + {second} - 1"


class Questioner(ScriptedEngine):
    """Writes a sum in every second proposal, as far as there are some; answers half of the questions rightly."""

    def __init__(self, student: Path, most: int) -> None:
        super().__init__(student, [])
        self.new, self.most = sums(), most

    def sample(
        self, checkpoint: Path, config: Any, prompts: list[list[int]], size: int, *, seed: int, **options: Any
    ) -> list[list[Rollout]]:
        self.seeds.append(seed)
        return [
            [rollout(n, sample, prompt, self.text(prompt, n + sample), checkpoint.name) for sample in range(size)]
            for n, prompt in enumerate(prompts)
        ]

    def text(self, prompt: list[int], number: int) -> str:
        asked = self.tokenizer.decode(prompt)
        if "Write one new sum" in asked:
            self.most -= number % 2 == 0
            return next(self.new) if number % 2 == 0 and self.most >= 0 else "a sum"
        sum_asked = re.search(r"What is (\d+) \+ (\d+) - 1\?", asked)
        right = int(sum_asked[1]) + int(sum_asked[2]) - 1 if sum_asked and number % 2 else -1
        return f"#### {right}"


@pytest.mark.parametrize(
    "most", [pytest.param(100, marks=pytest.mark.full), 3, pytest.param(0, marks=pytest.mark.full)]
)
def test_the_students_own_problems_come_first_and_others_fill_the_round(school: School, most: int) -> None:
    name, engine = f"self-play-{most}", Questioner(school.student, most)
    folder, candidate = school.study(name, engine, *SETTINGS)
    admitted = []
    for number in (1, 2):
        path = folder / f"round-{number:02d}"
        proposals: Any = read_table(path / "select_prompts" / "proposals.parquet", PROPOSALS)
        own: Any = read_table(path / "select_prompts" / "prompts.parquet", PROMPTS)
        assert (proposals.verdict == "admitted").sum() == len(own)
        assert set(own.source) <= {"self_play"}
        others = path / "refill-1" / "select_prompts" / "prompts.parquet"
        drawn = len(read_table(others, PROMPTS)) if others.exists() else 0
        assert len(own) + drawn == 4
        metrics = json.loads((path / "checkpoint" / "metrics.json").read_text())
        assert metrics["self_play/unreadable"] >= 0.5
        questions = path / "credit_questions"
        assert questions.exists() == (len(own) > 0)
        # each proposal is one more group for the trainer
        assert metrics["groups"] == 4 + (8 if questions.exists() else 0)
        admitted += own.problem_id.tolist()
    assert len(set(admitted)) == len(admitted) == min(8, most)
    calls = len(engine.seeds)
    again = school.study(name, engine, *SETTINGS)
    assert (again[1].name, len(engine.seeds)) == (candidate.name, calls)
