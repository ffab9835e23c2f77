"""The problems of a round: most weight where the student sometimes succeeds, some for everything."""

import json
import logging
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from conf.schema import BenchmarkConfig, GrpoConfig, StudentConfig
from conf.storage.home import InputError
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.data import benchmarks
from rewards.data.contamination import exam_index
from rewards.verifier import Benchmark, Problem
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.curriculum import arm_of, estimates_of, read_arms, weights_of
from tasks.stage import Artifact, stage
from tasks.tables import OWNER_PROMPTS, PROMPTS, SOLVE_RATES, read_table, write_table

POOL = 20  # problems of an endless benchmark to choose from, per problem that is chosen
LEAST_POOL = 200  # and at least, so that a single prompt is also chosen among all kinds
log = logging.getLogger("nightschool")

Kind = Callable[[Problem], str]


@stage()
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
    count: int,
    drawn: tuple[Artifact, ...],
    owner: Artifact | None = None,
    owner_share: float = 0.0,
) -> None:
    """Draw `count` problems, each benchmark's share by its weight, and render their prompts.

    `owner`: the owner's prompts; they are `owner_share` of the count, or as many as are new to the round.
    `solve_rates`: the previous score stage; a kind never tried counts like the others of its benchmark's level.
    `excluded`: ids and questions of the exam's problems; neither they nor problems that ask nearly the same are drawn.
    `drawn`: the prompts that the round has already; none of their problems is drawn again, and the groups are numbered
    on. `seed`: of night, round and refill. Problems whose prompt leaves no room for a completion are skipped; raises
    InputError where none is left. `excluded.json` names the problems that the benchmarks themselves leave out;
    `selection.json` is described at `_outlook`.
    """
    chance = random.Random(seed)
    rates, by_level = _rates(solve_rates)
    estimates = estimates_of(read_arms(solve_rates.folder), grpo.choice) if solve_rates else {}
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    before = [
        row for artifact in drawn for row in read_table(artifact.folder / "prompts.parquet", PROMPTS).itertuples()
    ]
    taken = {problem_of(row) for row in before}
    owner_rows = _owner_rows(owner, round(owner_share * count), {problem.problem_id for problem in taken}, seed)
    rows: list[dict[str, Any]] = []
    unreadable: dict[str, list[str]] = {}
    kinds: list[tuple[int, list[str]]] = []
    probabilities: dict[str, float] = {}
    for entry, share in enumerate(shares([source.weight for source in sources], count - len(owner_rows))):
        source, benchmark = sources[entry], benchmarks.configured(sources[entry])
        kind, first = _kind_of(benchmark, source, sources), len(rows)
        pool = _pool(benchmark, seed, share, tuple(excluded))
        unreadable[source.name] = sorted({*unreadable.get(source.name, []), *benchmark.excluded.get("train", ())})
        guesses = {kind(one): by_level[level] for one in pool if (level := (one.benchmark, one.level)) in by_level}
        rates = guesses | rates
        weights = _weights(kind, pool, grpo, rates, estimates, chance)
        for arm, weight in _by_arm(kind, weights).items() if share else ():
            probabilities[arm] = probabilities.get(arm, 0.0) + weight * share / (count - len(owner_rows))
        for problem in _draw_order(weights, chance):
            if len(rows) == first + share:
                break
            messages = [{"role": "user", "content": benchmark.prompt(problem)}]
            tokens = prompt_tokens(tokenizer, messages, student)
            if len(tokens) <= max_prompt_tokens and problem not in taken:
                rows.append(_row(problem, kind(problem), messages, tokens, len(before) + len(rows)) | {"entry": entry})
                taken.add(problem)
        kinds.append((len(rows) - first, sorted({kind(problem) for problem in pool})))
        if len(rows) < first + share:
            log.warning("%s has %d of the %d prompts asked for: no more fit", source.label, len(rows) - first, share)
    if not rows and not owner_rows and not drawn:
        raise InputError(
            f"engine.max_model_len: no problem's prompt has at most {max_prompt_tokens} tokens, which is what "
            f"grpo.max_completion_tokens: {grpo.max_completion_tokens} leaves of it; raise the one or lower the other"
        )
    outlook = _outlook(rows, kinds, rates, grpo.group_size)
    rows += [row | {"group": group} for group, row in enumerate(owner_rows, len(before) + len(rows))]
    write_table(folder / "prompts.parquet", PROMPTS, rows)
    (folder / "excluded.json").write_text(json.dumps(unreadable))
    (folder / "selection.json").write_text(json.dumps(outlook | {"drawn": len(rows), "arms": probabilities}))


def kind_weights(kinds: Sequence[str], rates: Mapping[str, float], exploration: float) -> list[float]:
    """Return each kind's probability: p(1 − p) of its solve rate p, mixed with an even share for all.

    A kind of unknown rate counts as p = 0.5. Without the even share a kind that falls to p = 0 would never return.
    """
    signal = [rates.get(kind, 0.5) * (1 - rates.get(kind, 0.5)) for kind in kinds]
    total = sum(signal)
    if total == 0:  # every kind is always or never solved, or there is none
        return [1 / len(kinds) for _ in kinds]
    return [(1 - exploration) * (value / total) + exploration / len(kinds) for value in signal]


def expected_signal(kinds: Sequence[str], rates: Mapping[str, float], size: int) -> float:
    """Return the expected share of groups with signal: the mean of 1 − p^G − (1 − p)^G over the kinds.

    That is the probability that of a group's G (`size`) completions neither all nor none are correct, where each is
    correct with the kind's solve rate p. A kind never tried has the mean of the others.
    """
    usual = fmean(rates.values())
    known = [rates.get(kind, usual) for kind in kinds]
    return fmean(1 - rate**size - (1 - rate) ** size for rate in known)


def shares(weights: Sequence[float], count: int) -> list[int]:
    """Split `count` in proportion to the weights, by the largest remainders."""
    exact = [count * weight / sum(weights) for weight in weights]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: exact[i] - whole[i], reverse=True)
    for index in by_remainder[: count - sum(whole)]:
        whole[index] += 1
    return whole


def _pool(benchmark: Benchmark, seed: str, count: int, excluded: tuple[str, ...]) -> list[Problem]:
    """Return the training problems among which `count` are chosen, without the exam's."""
    problems = benchmark.draw(seed, max(POOL * count, LEAST_POOL))
    exam, forbidden = exam_index(excluded), set(excluded)
    pool = [one for one in problems if not ({one.problem_id, one.question} & forbidden or exam.asks(one.question))]
    if left_out := len(problems) - len(pool):
        log.info("%s: left out %d of %d problems that the exam asks", benchmark.name, left_out, len(problems))
    return pool


def _kind_of(benchmark: Benchmark, source: BenchmarkConfig, sources: Sequence[BenchmarkConfig]) -> Kind:
    """Return the function from a problem to its kind. A benchmark that comes from two sources has kinds for each."""
    if len({(other.source, other.revision) for other in sources if other.name == source.name}) == 1:
        return benchmark.kind
    origin = source.source or source.revision or "the default source"
    return lambda problem: f"{benchmark.kind(problem)} of {origin}"


def _weights(
    kind: Kind,
    pool: Sequence[Problem],
    grpo: GrpoConfig,
    rates: Mapping[str, float],
    estimates: Mapping[str, float],
    chance: random.Random,
) -> dict[Problem, float]:
    """Return each problem's probability: that of its kind or arm by `choice`, shared alike by the pool's of it."""
    by_rate = grpo.choice == "solve_rate"
    members: dict[str, list[Problem]] = defaultdict(list)
    different = list(dict.fromkeys(pool))
    for problem in chance.sample(different, len(different)):
        members[kind(problem) if by_rate else _arm(kind, problem)].append(problem)
    names = sorted(members)
    drawn = kind_weights(names, rates, grpo.exploration) if by_rate else weights_of(names, estimates, grpo.exploration)
    return {
        problem: weight / len(members[name])
        for name, weight in zip(names, drawn, strict=True)
        for problem in members[name]
    }


def _arm(kind: Kind, problem: Problem) -> str:
    return arm_of(kind(problem), problem.problem_id, problem.benchmark, problem.level)


def _by_arm(kind: Kind, weights: Mapping[Problem, float]) -> dict[str, float]:
    """Return each arm's probability."""
    found: dict[str, float] = defaultdict(float)
    for problem, weight in weights.items():
        found[_arm(kind, problem)] += weight
    return found


def _draw_order(weights: Mapping[Problem, float], chance: random.Random) -> list[Problem]:
    """Return the problems in the order in which they are drawn by weight, none twice."""
    keys = {problem: _draw_key(chance.random(), weight) for problem, weight in weights.items()}
    return sorted(keys, key=lambda problem: keys[problem], reverse=True)


def _draw_key(chance: float, weight: float) -> float:
    """Return the sort key of a weighted draw without replacement: log u^(1/w), the largest first.

    Efraimidis and Spirakis (2006). The logarithm does not underflow for small weights; a weight of 0 comes last.
    """
    return math.log(chance or math.ulp(0.0)) / weight if weight > 0 else -math.inf


def _outlook(
    rows: Sequence[Mapping[str, Any]],
    kinds: Sequence[tuple[int, Sequence[str]]],
    rates: Mapping[str, float],
    size: int,
) -> dict[str, float]:
    """Return the number of prompts drawn, and the expected share of groups with signal, also of an even draw.

    `kinds`: for each benchmark, how many were drawn, and all its kinds. Without solve rates there is no expectation.
    """
    if not rows or not rates:
        return {"drawn": len(rows)}
    even = [(number, expected_signal(all_kinds, rates, size)) for number, all_kinds in kinds if number]
    return {
        "drawn": len(rows),
        "expected_signal_share": expected_signal([row["kind"] for row in rows], rates, size),
        "even_signal_share": sum(number * share for number, share in even) / len(rows),
    }


def _owner_rows(owner: Artifact | None, count: int, taken: Set[str], seed: str) -> list[dict[str, Any]]:
    """Return rows of at most `count` of the owner's prompts, without the group's number. They have no truth."""
    if owner is None:
        return []
    table = read_table(owner.folder / "owner_prompts.parquet", OWNER_PROMPTS)
    unused = [row for row in table.to_dict("records") if row["problem_id"] not in taken]
    constant = {"kind": OWNER, "source": "journal", "benchmark": None, "truth": None, "level": None, "entry": None}
    drawn = random.Random(f"{seed} owner").sample(unused, min(count, len(unused)))
    return [{str(name): value for name, value in row.items()} | constant for row in drawn]


def _rates(previous: Artifact | None) -> tuple[dict[str, float], dict[tuple[str, str | None], float]]:
    """Return the solve rates of the kinds tried, and those of their benchmarks' levels, by Laplace's rule."""
    if previous is None:
        return {}, {}
    table: pd.DataFrame = read_table(previous.folder / "solve_rates.parquet", SOLVE_RATES)
    table = table[table.tried > 0]
    rates: dict[str, float] = {}
    levels: dict[tuple[str, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    rows: list[dict[str, Any]] = table.to_dict("records")  # pyright: ignore
    for row in rows:
        rates[row["problem_id"]] = row["solved"] / row["tried"]
        level = levels[row["benchmark"], row["level"]]
        level[0] += row["solved"]
        level[1] += row["tried"]
    return rates, {name: (solved + 1) / (tried + 2) for name, (solved, tried) in levels.items()}


def problem_of(row: Any) -> Problem:
    """Return the problem of a row of the prompts table; the owner's prompts have no truth."""
    return Problem(row.problem_id, row.benchmark or OWNER, row.question, row.truth or "", row.level)


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
