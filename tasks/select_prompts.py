"""Which problems a round practises: most weight where the student sometimes succeeds, some for everything."""

import json
import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from conf.home import InputError
from conf.schema import BenchmarkConfig, GrpoConfig, StudentConfig
from models.policy import load_tokenizer, prompt_tokens
from rewards import benchmarks
from rewards.arithmetic import Arithmetic
from rewards.verifier import Benchmark, Problem
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, SOLVE_RATES, read_table, write_table

POOL = 20  # problems of an endless benchmark to choose from, for each that is chosen


@stage(tags=["prompts"])
def select_prompts(
    folder: Path,
    *,
    sources: tuple[BenchmarkConfig, ...],
    grpo: GrpoConfig,
    student: StudentConfig,
    checkpoint: Path,
    solve_rates: Artifact | None,
    seed: str,
    excluded: Sequence[str],
    max_prompt_tokens: int,
) -> None:
    """Draws the round's problems and renders their prompts.

    `solve_rates`: the score stage of the round before. `excluded`: problem ids of the exam, which may never be drawn.
    `seed`: of night and round. Problems whose prompt leaves no room for a completion are passed over; raises InputError
    where not one is left.
    """
    chance, forbidden = random.Random(seed), set(excluded)
    rates = _rates(solve_rates)
    tokenizer = load_tokenizer(checkpoint)
    rows: list[dict[str, Any]] = []
    for source, count in zip(sources, shares([s.weight for s in sources], grpo.prompts_per_round), strict=True):
        benchmark = benchmarks.load(source.name, source.source, source.levels)
        pool = [p for p in training_problems(benchmark, seed, POOL * count) if p.problem_id not in forbidden]
        for problem in _fitting(benchmark, pool, rates, grpo.exploration, chance):
            if count == 0:
                break
            messages = [{"role": "user", "content": benchmark.prompt(problem)}]
            tokens = prompt_tokens(tokenizer, messages, student)
            if len(tokens) <= max_prompt_tokens:
                rows.append(_row(problem, benchmark.kind(problem), messages, tokens, len(rows)))
                count -= 1
    if not rows:
        raise InputError(
            f"engine.max_model_len: no problem's prompt has at most {max_prompt_tokens} tokens, which is what "
            f"grpo.max_completion_tokens: {grpo.max_completion_tokens} leaves of it; raise the one or lower the other"
        )
    write_table(folder / "prompts.parquet", PROMPTS, rows)


def training_problems(benchmark: Benchmark, seed: str, count: int) -> list[Problem]:
    """What a benchmark has for training: all of its train split, or `count` problems of an endless one."""
    return benchmark.draw(seed, count) if isinstance(benchmark, Arithmetic) else benchmark.problems("train")


def kind_weights(kinds: Sequence[str], rates: Mapping[str, float], exploration: float) -> list[float]:
    """The probability of each kind: p(1 − p) of its solve rate, mixed with an even share for all.

    A kind never tried counts as p = 0.5. The even share is what keeps a kind in practice that is never (or always)
    solved: without it a kind that falls to 0 gets no more problems, and nobody sees it again.
    """
    signal = [rates.get(kind, 0.5) * (1 - rates.get(kind, 0.5)) for kind in kinds]
    total = sum(signal)
    if total == 0:  # all kinds are always or never solved, or there are none
        return [1 / len(kinds) for _ in kinds]
    return [(1 - exploration) * value / total + exploration / len(kinds) for value in signal]


def shares(weights: Sequence[float], count: int) -> list[int]:
    """`count` split in proportion to the weights, by the largest remainders."""
    exact = [count * weight / sum(weights) for weight in weights]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: exact[i] - whole[i], reverse=True)
    for index in by_remainder[: count - sum(whole)]:
        whole[index] += 1
    return whole


def _fitting(
    benchmark: Benchmark, pool: Sequence[Problem], rates: Mapping[str, float], exploration: float, chance: random.Random
) -> list[Problem]:
    """The pool in the order in which it is to be practised: kinds drawn by their weight, no problem twice."""
    members: dict[str, list[Problem]] = defaultdict(list)
    for problem in chance.sample(pool, len(pool)):
        members[benchmark.kind(problem)].append(problem)
    kinds = sorted(members)
    weights = dict(zip(kinds, kind_weights(kinds, rates, exploration), strict=True))
    keys = {
        problem: _lot(chance.random(), weights[kind] / len(members[kind]))
        for kind in kinds
        for problem in members[kind]
    }
    return sorted(keys, key=lambda problem: keys[problem], reverse=True)


def _lot(chance: float, weight: float) -> float:
    """A problem's place in a draw without replacement, by Efraimidis and Spirakis (2006): the largest u^(1/w) first.

    As a logarithm, which cannot fall to 0 however small the weight is; a weight of 0 comes last.
    """
    return math.log(chance or math.ulp(0.0)) / weight if weight > 0 else -math.inf


def _rates(previous: Artifact | None) -> dict[str, float]:
    if previous is None:
        return {}
    table: pd.DataFrame = read_table(previous.folder / "solve_rates.parquet", SOLVE_RATES)
    return {row.problem_id: row.solved / row.tried for row in table.itertuples() if row.tried > 0}  # pyright: ignore


def _row(problem: Problem, kind: str, messages: list[dict[str, str]], tokens: list[int], group: int) -> dict[str, Any]:
    return {
        "problem_id": problem.problem_id,
        "group": group,
        "messages": json.dumps(messages),
        "prompt_token_ids": tokens,
        "question": problem.question,
        "kind": kind,
        "source": "benchmark",
        "benchmark": problem.benchmark,
        "truth": problem.truth,
        "level": problem.level,
    }
