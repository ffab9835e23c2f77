"""Draw a round's problems: mostly those that the student sometimes solves, and some of every kind."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from conf.schema import BenchmarkConfig, GrpoConfig
from conf.storage.log import log
from rewards.data.contamination import exam_index
from rewards.verifier import Benchmark, Problem
from tasks.rollouts.curriculum import arm_of, weights_of
from tasks.rollouts.guidance import Rates, share_of
from tasks.stage import Artifact
from tasks.tables import SOLVE_RATES, table_rows

POOL = 20  # for each problem to choose, an endless benchmark offers this many
LEAST_POOL = 200  # minimum number on offer, so that even a single prompt is chosen from all kinds of problems

Kind = Callable[[Problem], str]


def expected_signal(kinds: Sequence[str], rates: Mapping[str, float], size: int) -> float:
    """Return the expected share of groups with signal: the mean of 1 − p^G − (1 − p)^G over the kinds.

    This is the probability that a group of G (`size`) completions is neither all correct nor all wrong, if each
    completion is correct with probability p, the kind's solve rate. A kind without a rate gets the mean of `rates`.
    """
    usual = fmean(rates.values())
    known = [rates.get(kind, usual) for kind in kinds]
    return fmean(1 - rate**size - (1 - rate) ** size for rate in known)


def shares(weights: Sequence[float], count: int) -> list[int]:
    """Split `count` into whole numbers in proportion to the weights, by the largest-remainder method."""
    exact = [count * weight / sum(weights) for weight in weights]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: exact[i] - whole[i], reverse=True)
    for index in by_remainder[: count - sum(whole)]:
        whole[index] += 1
    return whole


def pool_of(benchmark: Benchmark, seed: str, count: int, excluded: tuple[str, ...]) -> list[Problem]:
    """Return the training problems from which `count` will be chosen, without those that the exam asks.

    `excluded`: the exam's questions.
    """
    problems = benchmark.draw(seed, max(POOL * count, LEAST_POOL))
    exam = exam_index(excluded)
    pool = [problem for problem in problems if not exam.has(problem.question)]
    if left_out := len(problems) - len(pool):
        log.info("%s: left out %d of %d problems that the exam asks", benchmark.name, left_out, len(problems))
    return pool


def level_order(level: str) -> tuple[int, str]:
    """Return a key that sorts levels from easy to hard: numbers by their value, other names by the alphabet."""
    return (int(level), "") if level.isdecimal() else (0, level)


def practised(pool: Sequence[Problem], benchmark: Benchmark, rates: Rates) -> list[Problem]:
    """Return the problems of the pool whose level is practised: the lowest, and any that follows a mastered one."""
    levels = sorted({problem.level for problem in pool if problem.level is not None}, key=level_order)
    reached: set[str | None] = {None}
    for level in levels:
        reached.add(level)
        if not benchmark.mastered(level, rates.get((benchmark.name, level, 0.0), 0.0)):
            break
    return [problem for problem in pool if problem.level in reached]


def kind_of(benchmark: Benchmark, source: BenchmarkConfig, sources: Sequence[BenchmarkConfig]) -> Kind:
    """Return the function that names a problem's kind. If a benchmark has several sources, each has separate kinds."""
    if len({(other.source, other.revision) for other in sources if other.name == source.name}) == 1:
        return benchmark.kind
    origin = source.source or source.revision or "the default source"
    return lambda problem: f"{benchmark.kind(problem)} of {origin}"


def problem_weights(
    kind: Kind,
    pool: Sequence[Problem],
    grpo: GrpoConfig,
    rates: Mapping[str, float],
    estimates: Mapping[str, float],
    chance: random.Random,
) -> dict[Problem, float]:
    """Return each problem's probability of being drawn. All problems of a kind (or arm) are equally probable.

    `weights_of` gives the probability of a whole kind. With `choice: solve_rate`, a kind with solve rate p (0.5 if
    unknown) is worth p(1 − p). Otherwise, an arm is worth its estimate or, without one, the mean estimate.
    """
    by_rate = grpo.choice == "solve_rate"
    members: dict[str, list[Problem]] = defaultdict(list)
    different = list(dict.fromkeys(pool))
    for problem in chance.sample(different, len(different)):
        name = kind(problem)
        members[name if by_rate else arm_of(name, problem.problem_id, problem.benchmark, problem.level)].append(problem)
    names, usual = sorted(members), fmean(estimates.values()) if estimates else 0.0
    if by_rate:
        worth = [rate * (1 - rate) for rate in (rates.get(name, 0.5) for name in names)]
    else:
        worth = [estimates.get(name, usual) for name in names]
    return {
        problem: weight / len(members[name])
        for name, weight in zip(names, weights_of(worth, grpo.exploration), strict=True)
        for problem in members[name]
    }


def draw_order(weights: Mapping[Problem, float], chance: random.Random) -> list[Problem]:
    """Return the problems in the order in which a weighted draw without replacement takes them. Weights of 0 come last.

    Source: Efraimidis and Spirakis (2006). The keys are log u^(1/w), because u^(1/w) underflows for small weights.
    """
    keys: dict[Problem, float] = {}
    for problem, weight in weights.items():
        uniform = chance.random() or math.ulp(0.0)
        keys[problem] = math.log(uniform) / weight if weight > 0 else -math.inf
    return sorted(keys, key=keys.__getitem__, reverse=True)


def read_rates(previous: Artifact | None) -> tuple[dict[str, float], dict[tuple[str, str | None, float], float]]:
    """Return the solve rates of the kinds tried and, with Laplace smoothing, of each (benchmark, level, hint share)."""
    if previous is None:
        return {}, {}
    rates: dict[str, float] = {}
    levels: dict[tuple[str, str | None, float], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in table_rows(previous.folder / "solve_rates.parquet", SOLVE_RATES):
        if row["tried"] > 0:
            rates[row["problem_id"]] = row["solved"] / row["tried"]
            level = levels[row["benchmark"], row["level"], share_of(row["problem_id"])]
            level[0] += row["solved"]
            level[1] += row["tried"]
    return rates, {name: (solved + 1) / (tried + 2) for name, (solved, tried) in levels.items()}
