"""Select a round's prompts: mostly problems that the student sometimes solves, and some of every kind."""

import json
import random
from collections.abc import Sequence, Set
from pathlib import Path

from conf.schema import BenchmarkConfig, GrpoConfig, StudentConfig
from conf.storage.home import InputError
from conf.storage.log import log
from models.hf.loading import Tokenizer, answer_tokens, encode, load_tokenizer, prompt_tokens
from rewards.data import benchmarks
from rewards.verifier import Benchmark, Problem
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.curriculum import estimates_of, read_arms
from tasks.rollouts.draw import (
    Kind,
    draw_order,
    expected_signal,
    kind_of,
    pool_of,
    practised,
    problem_weights,
    read_rates,
    shares,
)
from tasks.rollouts.guidance import HARD, Guide, Rates, hinted
from tasks.stage import Artifact, stage
from tasks.tables import OWNER_PROMPTS, PROMPTS, Row, table_rows, write_table


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
    exam_questions: Sequence[str],
    max_prompt_tokens: int,
    count: int,
    drawn: tuple[Artifact, ...],
    owner: Artifact | None = None,
    owner_share: float = 0.0,
) -> None:
    """Draw `count` problems, divided among the benchmarks by weight, and render their prompts.

    If the student hardly ever solves a level, its problems may come with hints (see `tasks/rollouts/guidance.py`).

    `owner`: the owner's prompts. They make up `owner_share` of `count`, or less if too few are new to the round.
    `solve_rates`: the previous score stage. A kind that was never tried gets the solve rate of its level.
    Neither `exam_questions` nor near-duplicates of them are drawn.
    `drawn`: the prompts that the round already has. Their problems are not drawn again; group numbers follow theirs.
    `seed`: names the night, round and refill. `max_prompt_tokens`: problems with longer prompts are skipped.
    Raises InputError if no problem is left. `excluded.json` lists the problems that the benchmarks leave out.
    `selection.json` has the number `drawn` and, if there are solve rates, the `expected_signal_share` of groups.
    """
    chance = random.Random(seed)
    rates, by_level = read_rates(solve_rates)
    estimates = estimates_of(read_arms(solve_rates.folder)) if solve_rates and grpo.choice == "signal" else {}
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    before = [row for artifact in drawn for row in table_rows(artifact.folder / "prompts.parquet", PROMPTS)]
    taken = {problem_of(row) for row in before}
    owner_rows = _owner_rows(owner, round(owner_share * count), {problem.problem_id for problem in taken}, seed)
    rows: list[Row] = []
    unreadable: dict[str, list[str]] = {}
    offered = 0
    for entry, share in enumerate(shares([source.weight for source in sources], count - len(owner_rows))):
        source, benchmark = sources[entry], benchmarks.configured(sources[entry])
        kind, first, too_long = kind_of(benchmark, source, sources), len(rows), 0
        pool = practised(pool_of(benchmark, seed, share, tuple(exam_questions)), benchmark, by_level)
        offered += len(pool)
        unreadable[source.name] = sorted({*unreadable.get(source.name, []), *benchmark.excluded.get("train", ())})
        guide = _guide(benchmark, grpo, by_level)
        rates = {kind(one): guess for one in pool if (guess := guide.guess(one)) is not None} | rates
        for problem in draw_order(problem_weights(kind, pool, grpo, rates, estimates, chance), chance):
            if len(rows) == first + share:
                break
            row = _row(problem, benchmark, kind, guide, chance, tokenizer, student, grpo)
            if len(row["prompt_token_ids"]) > max_prompt_tokens:
                too_long += 1
            elif problem not in taken:
                rows.append(row | {"group": len(before) + len(rows), "entry": entry})
                taken.add(problem)
        if len(rows) < first + share:
            few = "%s has %d of the %d prompts asked for (%d others are too long)"
            log.warning(few, source.label, len(rows) - first, share, too_long)
    if not offered and not owner_rows and not drawn:
        raise InputError(
            "benchmarks: the exam asks all of their training problems; give the splits different questions"
        )
    if not rows and not owner_rows and not drawn:
        raise InputError(
            f"engine.max_model_len: no problem's prompt has at most {max_prompt_tokens} tokens, which is what "
            f"grpo.max_completion_tokens: {grpo.max_completion_tokens} leaves of it; raise the one or lower the other"
        )
    selection: dict[str, float] = {"drawn": len(rows) + len(owner_rows)}
    if rows and rates:
        kinds = [row["kind"] for row in rows]
        selection["expected_signal_share"] = expected_signal(kinds, rates, grpo.group_size)
    rows += [row | {"group": group} for group, row in enumerate(owner_rows, len(before) + len(rows))]
    write_table(folder / "prompts.parquet", PROMPTS, rows)
    (folder / "excluded.json").write_text(json.dumps(unreadable))
    (folder / "selection.json").write_text(json.dumps(selection))


def _guide(benchmark: Benchmark, grpo: GrpoConfig, levels: Rates) -> Guide:
    """Return the guide for a benchmark's hints. Unless a level is known to be hard, the guide gets no solutions."""
    is_hard = any(rate < HARD for (name, *_), rate in levels.items() if name == benchmark.name)
    solutions = dict(benchmark.solutions()) if grpo.hints and is_hard and not benchmark.environment else {}
    return Guide(levels, grpo.hints, solutions, benchmark.runs_programs)


def _owner_rows(owner: Artifact | None, count: int, taken: Set[str], seed: str) -> list[Row]:
    """Return up to `count` of the owner's prompts, drawn at random, as prompt rows without group numbers and truths."""
    if owner is None:
        return []
    table = table_rows(owner.folder / "owner_prompts.parquet", OWNER_PROMPTS)
    unused = [row for row in table if row["problem_id"] not in taken]
    drawn = random.Random(f"{seed} owner").sample(unused, min(count, len(unused)))
    return [row | {"kind": OWNER, "source": "journal"} for row in drawn]


def problem_of(row: Row) -> Problem:
    """Return the problem in a row of the prompts table. The truth of an owner's prompt is an empty string."""
    return Problem(row["problem_id"], row["benchmark"] or OWNER, row["question"], row["truth"] or "", row["level"])


def _row(
    problem: Problem,
    benchmark: Benchmark,
    kind: Kind,
    guide: Guide,
    chance: random.Random,
    tokenizer: Tokenizer,
    student: StudentConfig,
    grpo: GrpoConfig,
) -> Row:
    """Return a problem as a row of the prompts table, with as much of its solution as the guide decides to show."""
    part, text = guide.shown(problem, chance)
    begun, solution = ("", text) if part == 1 else (text, None)
    if solution and len(answer_tokens(tokenizer, solution)) > grpo.max_completion_tokens:
        part, solution = 0.0, None
    messages = [{"role": "user", "content": benchmark.prompt(problem)}]
    return {
        "problem_id": problem.problem_id,
        "messages": json.dumps(messages),
        "prompt_token_ids": [*prompt_tokens(tokenizer, messages, student), *encode(tokenizer, begun)],
        "question": problem.question,
        "kind": hinted(kind(problem), 0.0 if solution else part),  # beside a solution, the others are plain attempts
        "source": "benchmark",
        "benchmark": problem.benchmark,
        "truth": problem.truth,
        "level": problem.level,
        "hint": begun or None,
        "solution": solution,
    }
