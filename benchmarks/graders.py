"""The speed of the graders: programs per second, in the sandbox and in a bare subprocess, and answers per second.

    python -m benchmarks.graders [--json] [--programs 874] [--items 1000]

Measured side by side on the real data (NIGHTSCHOOL_DATA). The bare subprocess, source and asserts in one `python -c`
and one process per core, is what a script would do; it is not safe.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from rewards.competition_math import CompetitionMath
from rewards.gsm8k import Gsm8k
from rewards.mbpp import Mbpp
from rewards.programs.unit_tests import ProgramTests
from rewards.sandbox import Program, Sandbox
from rewards.verifier import Attempt, Problem

SINGLE = 200  # programs run one at a time for their latency
REPEATS = 3


def main() -> None:
    """Measure everything and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--programs", type=int, default=874)
    parser.add_argument("--items", type=int, default=1000)
    options = parser.parse_args()
    figures = {"cores": len(os.sched_getaffinity(0))} | programs(options.programs) | answers(options.items)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:36} {value:12.4g}")


def programs(count: int) -> dict[str, float]:
    """Return throughput and latency of MBPP's reference solutions, and the pool's start-up time and memory."""
    references = _references()[:count]
    count = len(references)
    started = time.perf_counter()
    with Sandbox() as sandbox:
        start = time.perf_counter() - started
        before = _resident_bytes()
        rates = {"sandbox": [], "bare": []}
        for _ in range(REPEATS):  # alternating, so that other load affects both
            rates["sandbox"].append(_rate(lambda: _all_correct(sandbox, references), count))
            rates["bare"].append(_rate(lambda: _bare(references), count))
        ours = [_milliseconds(lambda p=program: sandbox.run([p])) for program in references[:SINGLE]]
        grown = _resident_bytes() - before
    bare = [_milliseconds(lambda p=program: _bare_one(p)) for program in references[:SINGLE]]
    ratio = statistics.median(a / b for a, b in zip(rates["sandbox"], rates["bare"], strict=True))
    return {
        "sandbox_start_seconds": start,
        "sandbox_programs_per_second": statistics.median(rates["sandbox"]),
        "bare_programs_per_second": statistics.median(rates["bare"]),
        "sandbox_to_bare_ratio": ratio,
        "sandbox_ms_median": statistics.median(ours),
        "sandbox_ms_p99": statistics.quantiles(ours, n=100)[98],
        "bare_ms_median": statistics.median(bare),
        "bare_ms_p99": statistics.quantiles(bare, n=100)[98],
        "sandbox_grown_mb": grown / 2**20,
    }


def answers(count: int) -> dict[str, float]:
    """Return answers per second: GSM8K and MATH truths against themselves, and answers that need symbolic maths."""
    gsm8k, maths = Gsm8k(), CompetitionMath()
    words = [Attempt(problem, problem.truth) for problem in gsm8k.problems("test")]
    strings = [Attempt(problem, problem.truth) for problem in maths.problems("test")[:count]]
    symbolic = [Attempt(_root(n), rf"\boxed{{\frac{{\sqrt{{{n}}}}}{{2}}}}") for n in range(1, count + 1)]
    return {
        "gsm8k_items_per_second": _rate(lambda: gsm8k.score(words), len(words)),
        "math_string_items_per_second": _rate(lambda: maths.score(strings), len(strings)),
        "math_symbolic_items_per_second": _rate(lambda: maths.score(symbolic), len(symbolic)),
    }


def _references() -> list[Program]:
    pairs = [
        (ProgramTests.read(problem.truth), code)
        for problem, code in [*Mbpp().references("train"), *Mbpp().references("test")]
    ]
    return [tests.program(code) for tests, code in pairs if tests is not None]


def _root(n: int) -> Problem:
    """Return a problem whose truth equals its answer only as an expression."""
    return Problem(f"math/{n}", "math", "", rf"\frac{{{n}}}{{2\sqrt{{{n}}}}}")


def _all_correct(sandbox: Sandbox, references: Sequence[Program]) -> None:
    wrong = [score.detail for score in sandbox.run(references) if score.verdict != "correct"]
    if wrong:
        raise SystemExit(f"{len(wrong)} references were not judged correct, the first: {wrong[0]}")


def _bare(references: Sequence[Program]) -> None:
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        if not all(pool.map(_bare_one, references)):
            raise SystemExit("a reference failed in a bare subprocess")


def _bare_one(program: Program) -> bool:
    text = "\n".join([program.source, program.setup, *program.tests])
    return subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, timeout=60).returncode == 0


def _rate(run: Callable[[], Any], count: int) -> float:
    started = time.perf_counter()
    run()
    return count / (time.perf_counter() - started)


def _milliseconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - started)


def _resident_bytes() -> int:
    """Return the proportional set size (PSS) of this process and all its children: shared memory counts once."""
    parent = psutil.Process()
    return sum(process.memory_full_info().pss for process in [parent, *parent.children(recursive=True)])


if __name__ == "__main__":
    main()
