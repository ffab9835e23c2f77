"""Draw a round's problems: mostly those that the student sometimes solves, and some of every kind."""

import logging
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from conf.schema import BenchmarkConfig, GrpoConfig
from rewards.data.contamination import exam_index
from rewards.verifier import Benchmark, Problem
from tasks.rollouts.curriculum import arm_of, weights_of
from tasks.rollouts.guidance import share_of
from tasks.stage import Artifact
from tasks.tables import SOLVE_RATES, table_rows

POOL = 20  # problems of an endless benchmark to choose from, per chosen problem
LEAST_POOL = 200  # minimum number to choose from, so that even a single prompt is chosen among all kinds
log = logging.getLogger("nightschool")

Kind = Callable[[Problem], str]


def expected_signal(kinds: Sequence[str], rates: Mapping[str, float], size: int) -> float:
    """Return the expected share of groups with signal: the mean of 1 − p^G − (1 − p)^G over the kinds.

    This is the probability that a group's G (`size`) completions are neither all correct nor all wrong, if each is
    correct with the kind's solve rate p. A kind that was never tried gets the mean rate of the others.
    """
    usual = fmean(rates.values())
    known = [rates.get(kind, usual) for kind in kinds]
    return fmean(1 - rate**size - (1 - rate) ** size for rate in known)


def shares(weights: Sequence[float], count: int) -> list[int]:
    """Split `count` in proportion to the weights, with the largest-remainder method."""
    exact = [count * weight / sum(weights) for weight in weights]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: exact[i] - whole[i], reverse=True)
    for index in by_remainder[: count - sum(whole)]:
        whole[index] += 1
    return whole


def pool_of(benchmark: Benchmark, seed: str, count: int, excluded: tuple[str, ...]) -> list[Problem]:
    """Return the pool of training problems from which `count` are chosen, without problems that the exam asks."""
    problems = benchmark.draw(seed, max(POOL * count, LEAST_POOL))
    exam, forbidden = exam_index(excluded), set(excluded)
    pool = [one for one in problems if not ({one.problem_id, one.question} & forbidden or exam.has(one.question))]
    if left_out := len(problems) - len(pool):
        log.info("%s: left out %d of %d problems that the exam asks", benchmark.name, left_out, len(problems))
    return pool


def kind_of(benchmark: Benchmark, source: BenchmarkConfig, sources: Sequence[BenchmarkConfig]) -> Kind:
    """Return a function that returns a problem's kind. If a benchmark has several sources, each has separate kinds."""
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
    """Return each problem's probability: its kind's or arm's probability, divided equally among its problems.

    With `choice: solve_rate`, a kind with solve rate p (0.5 if unknown) is worth p(1 − p). Otherwise an arm is worth
    its estimate, or the mean estimate if it has none.
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
    """Return the problems in the order of a weighted draw without replacement."""
    keys = {problem: _draw_key(chance.random(), weight) for problem, weight in weights.items()}
    return sorted(keys, key=lambda problem: keys[problem], reverse=True)


def _draw_key(chance: float, weight: float) -> float:
    """Return the sort key of a weighted draw without replacement: log u^(1/w), the largest first.

    Source: Efraimidis and Spirakis (2006). The log does not underflow for small weights. A weight of 0 comes last.
    """
    return math.log(chance or math.ulp(0.0)) / weight if weight > 0 else -math.inf


def read_rates(previous: Artifact | None) -> tuple[dict[str, float], dict[tuple[str, str | None, float], float]]:
    """Return solve rates by kind tried, and, smoothed with Laplace's rule, by (benchmark, level, hint share)."""
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
