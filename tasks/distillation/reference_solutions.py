"""The benchmarks' own solutions to training problems, as traces for a student that cannot solve such problems yet."""

import json
import random
from pathlib import Path

from conf.schema import BenchmarkConfig, SandboxConfig
from rewards.data.benchmarks import configured
from tasks.distillation.trace_filter import DATASET
from tasks.journal.tables import TRACES
from tasks.rollouts.draw import level_order, shares
from tasks.stage import stage
from tasks.tables import Row, write_table

EASIEST = 8  # a benchmark's pool of easiest problems is this many times its share


@stage()
def reference_solutions(
    folder: Path, *, sources: tuple[BenchmarkConfig, ...], sandbox: SandboxConfig, count: int, seed: str
) -> None:
    """Write the solutions to `count` training problems, divided among the benchmarks in proportion to their weights.

    Each benchmark's share is drawn from its easiest problems: those with the lowest levels and, within a level, the
    shortest solutions. A benchmark without solutions gets no share.
    """
    benchmarks = [(entry, configured(entry, sandbox)) for entry in sources]
    solved = [(entry, benchmark, found) for entry, benchmark in benchmarks if (found := benchmark.solutions())]
    rows: list[Row] = []
    for (entry, benchmark, found), share in zip(
        solved, shares([entry.weight for entry, _, _ in solved], count), strict=True
    ):
        easiest = sorted(found, key=lambda each: (level_order(each[0].level or ""), len(each[1]), each[0].problem_id))
        pool = easiest[: EASIEST * share]
        for problem, solution in random.Random(f"{seed} {entry.label}").sample(pool, min(share, len(pool))):
            rows.append(
                {
                    "messages": json.dumps([{"role": "user", "content": benchmark.prompt(problem)}]),
                    "response": solution,
                    "teacher": DATASET,
                    "benchmark": benchmark.name,
                    "truth": None if benchmark.environment else problem.truth,  # an episode is neither right nor wrong
                    "source": f"{benchmark.name}:{problem.problem_id}",
                }
            )
    write_table(folder / "traces.parquet", TRACES, rows)
