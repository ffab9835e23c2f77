"""Hints: only where a level is hardly ever solved, drawn by what each share taught, graded with the answer."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, EngineConfig, StudentConfig
from models.hf.loading import answer_tokens, load_tokenizer
from rewards.verifier import Problem
from tasks.rollouts.guidance import Guide
from tasks.rollouts.sample import sample
from tasks.rollouts.verified import Player
from tasks.tables import PROMPTS, SOLVE_RATES, read_rollouts
from tests.rewards.datasets import write_rows
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.tables import prompt, run_stage, solve_rate, write_stage
from tests.tasks.rollouts.test_select_prompts import select

SOLUTION = "Ann has three apples and buys one: 3 + 1 = 4.\n#### 4"
HARD = Problem("gsm8k/train/0", "gsm8k", "How many?", SOLUTION, "2")
RATES = {("gsm8k", "2", 0.0): 0.02, ("gsm8k", "2", 0.5): 0.5, ("gsm8k", "2", 0.75): 0.98}


def drawn(levels: dict[tuple[str, str | None, float], float], solutions: dict[Problem, str]) -> Counter[float]:
    guide = Guide(levels, (0.5, 0.75), solutions)
    chance = random.Random(1)
    return Counter(guide.shown(HARD, chance)[0] for _ in range(1000))


def test_shares_are_drawn_by_what_they_can_teach() -> None:
    """p(1 − p): 0.0196 of 0.2892 without a hint and with three quarters, 0.25 with half."""
    found = drawn(RATES, {HARD: SOLUTION})
    assert found[0.5] / 1000 == pytest.approx(0.864, abs=0.04)
    assert found[0.0] / 1000 == pytest.approx(found[0.75] / 1000, abs=0.04)
    assert Guide(RATES, (0.5, 0.75), {HARD: SOLUTION}).guess(HARD) == 0.5  # so its level is not starved


def test_the_solution_joins_the_answers_where_no_hint_helps() -> None:
    """HARD (1 − HARD) = 0.09 for the solution, 0.0196 for the question alone and for half."""
    guide = Guide({("gsm8k", "2", 0.0): 0.02, ("gsm8k", "2", 0.5): 0.02}, (0.5, 1.0), {HARD: SOLUTION})
    chance = random.Random(1)
    found = Counter(guide.shown(HARD, chance) for _ in range(1000))
    assert found[1.0, SOLUTION] / 1000 == pytest.approx(0.09 / 0.1292, abs=0.04)


@pytest.mark.parametrize(
    ("levels", "solutions"),
    [
        (RATES | {("gsm8k", "2", 0.0): 0.1}, {HARD: SOLUTION}),  # it is solved now and then
        ({}, {HARD: SOLUTION}),  # nothing is known
        (RATES, {}),
        (RATES, {HARD: "4"}),  # nothing of it can be shown
    ],
)
def test_other_problems_are_asked_as_they_are(
    levels: dict[tuple[str, str | None, float], float], solutions: dict[Problem, str]
) -> None:
    assert drawn(levels, solutions) == {0.0: 1000}


def test_a_hint_ends_the_prompt(tmp_path: Path, student: Path) -> None:
    rows = [{"question": f"How many? {number}", "answer": SOLUTION} for number in range(30)]
    source = BenchmarkConfig(name="gsm8k", source=write_rows(tmp_path / "train.jsonl", *rows))
    options: dict[str, Any] = {"sources": [source], "hints": (0.5,), "count": 20, "seed": "1"}
    prompts = select(tmp_path / "first", student, **options)
    assert set(prompts.hint) == {None}  # nothing is known yet
    assert set(prompts.kind) == set(prompts.problem_id)
    (level,) = set(prompts.level)
    tried = [solve_rate(f"gsm8k/train/{n}", 100, 0, level=level) for n in range(30)]
    tried += [solve_rate("gsm8k/train/0 · hint 0.5", 100, 50, level=level)]
    rates = write_stage(tmp_path / "rates", {"solve_rates": (SOLVE_RATES, tried)})
    prompts = select(tmp_path / "second", student, solve_rates=rates, **options)
    begun = prompts[prompts.hint.notna()]
    assert len(begun) > len(prompts) / 2
    tokenizer = load_tokenizer(student)
    for row in begun.to_dict("records"):
        assert row["hint"] == "Ann has three apples and"
        assert row["kind"] == f"{row['problem_id']} · hint 0.5"
        assert tokenizer.decode([int(token) for token in row["prompt_token_ids"]]).endswith(
            f"\nAssistant:{row['hint']}"
        )
    (tmp_path / "short").mkdir()
    short = write_rows(tmp_path / "short" / "train.jsonl", *(row | {"answer": "3 + 1 = 4\n#### 4"} for row in rows))
    options |= {"sources": [source.model_copy(update={"source": short})], "hints": (1.0,)}
    prompts = select(tmp_path / "third", student, solve_rates=rates, **options)
    beside = prompts[prompts.solution.notna()]
    assert len(beside) > len(prompts) / 2
    assert beside.kind.tolist() == beside.problem_id.tolist()  # plain attempts


def test_a_solution_takes_the_place_of_the_last_answer(tmp_path: Path, student: Path) -> None:
    rows = [prompt("a", 0) | {"solution": SOLUTION}, prompt("b", 1)]
    asked = write_stage(tmp_path / "prompts", {"prompts": (PROMPTS, rows)})
    engine: Any = TableEngine(student, {"": "no"})
    player = Player(student, StudentConfig(), EngineConfig(), engine, 64, temperature=1.3)
    run_stage(sample, tmp_path / "sample", prompts=asked, player=player, size=2, seed=1)
    assert engine.temperature == 1.3
    found = read_rollouts(tmp_path / "sample" / "rollouts.parquet")
    assert [(row.problem_id, row.sample, row.text, row.finish_reason) for row in found] == [
        ("a", 0, "no", "stop"),
        ("a", 1, SOLUTION, "given"),
        ("b", 0, "no", "stop"),
        ("b", 1, "", "stop"),
    ]
    assert found[1].token_ids == answer_tokens(load_tokenizer(student), SOLUTION)
    assert len(found[1].token_ids) == len(found[1].loss_mask) == len(found[1].sampler_logprobs)
