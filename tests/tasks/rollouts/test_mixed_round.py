"""A round of several benchmarks on the real files: drawn by weight, never of the exam, each judged by its own."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from conf.load import load_night
from conf.schema import GrpoConfig, RewardConfig, StudentConfig
from rewards.mbpp import Mbpp
from tasks.evaluation.evaluate import exam_problems
from tasks.rollouts.score import score
from tasks.rollouts.select_prompts import select_prompts
from tasks.stage import Artifact, commit
from tasks.tables import PROMPTS, ROLLOUTS, SCORES, read_table
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import rollout, write_stage

pytestmark = [
    pytest.mark.skipif(not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no files to read"),
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed: programs cannot be judged"),
]
CONFIG = load_night(Path(__file__).parents[3] / "conf" / "mixed.yaml")
GRPO = GrpoConfig(prompts_per_round=20, group_size=4, max_completion_tokens=10_000)
GARBAGE = "```\n\x00 \ud7ff ]]) #### \\boxed{ ½½ \N{BOMB}\n"


@pytest.fixture(scope="module")
def round_one(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Artifact]:
    """The prompts of a round, and the scores of a right, a wrong, a garbled and an empty answer to each."""
    night = tmp_path_factory.mktemp("night")
    exam = [problem for part in CONFIG.exam.parts for problem in exam_problems(part, CONFIG.sandbox)]
    folder = night / "select_prompts"
    folder.mkdir()
    select_prompts.write(
        folder,
        sources=CONFIG.benchmarks,
        grpo=GRPO,
        student=StudentConfig(),
        checkpoint=write_student(night / "student"),
        solve_rates=None,
        seed="1 2026-11-20 round 1",
        excluded=[text for problem in exam for text in (problem.problem_id, problem.question)],
        max_prompt_tokens=10_000,
        count=GRPO.prompts_per_round,
        drawn=(),
    )
    prompts = commit(folder, "select_prompts", {}, 1.0)
    table: Any = read_table(folder / "prompts.parquet", PROMPTS)
    references = {problem.problem_id: code for problem, code in Mbpp().references("train")}
    answered = [
        rollout(row["problem_id"], row["group"], sample, text)
        for row in table.to_dict("records")
        for sample, text in enumerate(answers(row, references))
    ]
    sampled = write_stage(night / "sample", {"rollouts": (ROLLOUTS, answered)})
    scored = night / "score"
    scored.mkdir()
    score.write(
        scored,
        prompts=prompts,
        rollouts=sampled,
        sources=CONFIG.benchmarks,
        grpo=GRPO,
        reward=RewardConfig(format=0.1),
        sandbox=CONFIG.sandbox,
        solve_rates=None,
        decay=0.7,
        night="2026-11-20",
    )
    return table, commit(scored, "score", {}, 1.0)


def answers(row: dict[str, Any], references: dict[str, str]) -> list[str]:
    """What a student might have written: a right answer, a wrong one, garbage, nothing."""
    match row["benchmark"]:
        case "mbpp":
            name = json.loads(row["truth"])["entry_point"]
            right = f"Here it is.\n```python\n{references[row['problem_id']]}\n```"
            wrong = f"```python\ndef {name}(*anything):\n    return None\n```"
        case "math":
            right, wrong = row["truth"], r"Clearly it is $\boxed{-98765.4321}$."
        case _:
            right, wrong = row["truth"], "It is so.\n#### 987654321"
    return [right, wrong, GARBAGE, ""]


EXPECTED = {
    "gsm8k": ["correct", "wrong", "no_answer", "no_answer"],
    "math": ["correct", "wrong", "no_answer", "no_answer"],
    "mbpp": ["correct", "wrong", "crashed", "no_answer"],
}


def test_every_answer_gets_the_verdict_that_it_deserves(round_one: tuple[Any, Artifact]) -> None:
    table, scored = round_one
    scores = read_table(scored.folder / "scores.parquet", SCORES).set_index(["group", "sample"])
    for group, benchmark, problem_id in zip(table.group, table.benchmark, table.problem_id, strict=True):
        found = [scores.verdict[group, sample] for sample in range(4)]
        assert found == EXPECTED[benchmark], problem_id
        rewards = [scores.reward[group, sample] for sample in range(4)]
        assert rewards == pytest.approx([(v == "correct") + 0.1 * (v != "no_answer") for v in found]), problem_id
