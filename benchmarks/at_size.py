"""What grows with the size of the data and the length of the answers.

    NIGHTSCHOOL_DATA=data python -m benchmarks.at_size

Prints the seconds in which a round's prompts are drawn from 20,000 problems with solve rates, and in which 7,680 long
answers to MATH's problems are graded (half right, half wrong: the dataset's solutions with and without another
number), and the time and peak memory of updates on completions of up to 2,048 tokens.
"""

import os
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from benchmarks.inputs.starter import starter
from benchmarks.outputs.page import markdown
from benchmarks.update import in_child
from conf.load import STARTER, load_night
from conf.sections.benchmark import BenchmarkConfig, ExamPart
from rewards.data import benchmarks
from rewards.data.dataset_rows import DATA_VARIABLE
from rewards.verifier import Attempt
from tasks.rollouts.select_prompts import select_prompts
from tasks.stage import Artifact
from tasks.tables import SOLVE_RATES, write_table

SOURCES = (("gsm8k", 2), ("math", 2), ("mbpp", 1))  # with their weights
COPIES = 12_000  # rows of GSM8K, so that there are 20,000 problems in all
ANSWERS = 7680  # of a night of conf/nightly.yaml
CHARACTERS = 2000  # of an answer, about 512 tokens
UPDATES = ((1, 512), (1, 1024), (1, 2048), (2, 2048))  # groups of 4 completions, tokens


def main() -> None:
    """Measure, and print the tables."""
    if DATA_VARIABLE not in os.environ:
        raise SystemExit(f"benchmarks.at_size: set {DATA_VARIABLE} to the folder with the test data")
    print(markdown("round | 1 | 2 | 3 | 4", [["seconds to draw its prompts", *(f"{each:.2f}" for each in draws())]]))
    seconds, right = graded()
    print(f"\n{ANSWERS} answers to MATH graded in {seconds:.0f} s, {right} of them correct\n")
    print(markdown("completions × tokens | seconds | peak GB", []))
    for groups, length in UPDATES:
        found = in_child({"method": "ours", "groups": [(106, [length] * 4)] * groups}, starter(), steps=2)
        print(f"| {4 * groups} × {length} | {found['seconds']:.1f} | {found['peak_gb']:.2f} |", flush=True)


def draws() -> list[float]:
    """Return the seconds of four consecutive draws in one process; the first also indexes the exam's questions."""
    with tempfile.TemporaryDirectory() as temporary, patch.dict(os.environ):
        data, checkpoint, rates = (Path(temporary, name) for name in ("data", "checkpoint", "rates"))
        original = Path(os.environ[DATA_VARIABLE]).resolve()
        (data / "gsm8k").mkdir(parents=True)
        lines = (original / "gsm8k" / "train.jsonl").read_text().splitlines()
        (data / "gsm8k" / "train.jsonl").write_text("\n".join((lines * 2)[:COPIES]))
        for name in ("math", "mbpp"):
            (data / name).symlink_to(original / name)
        os.environ[DATA_VARIABLE] = str(data)
        checkpoint.symlink_to(starter().resolve())
        exam = [
            text
            for name in ("math", "mbpp")
            for problem in benchmarks.configured(ExamPart(benchmark=name)).problems("test")
            for text in (problem.problem_id, problem.question)
        ]
        sources = tuple(BenchmarkConfig(name=name, weight=weight) for name, weight in SOURCES)
        rates.mkdir()
        write_table(rates / "solve_rates.parquet", SOLVE_RATES, _rates(sources))
        config, seconds = load_night(STARTER), []
        for number in range(4):
            started = time.perf_counter()
            select_prompts.write(
                Path(tempfile.mkdtemp(dir=temporary)),
                sources=sources,
                grpo=config.grpo,
                student=config.student,
                checkpoint=checkpoint,
                solve_rates=Artifact(folder=rates, digest=""),
                seed=f"round {number}",
                exam_questions=exam,
                max_prompt_tokens=512,
                count=32,
                drawn=(),
            )
            seconds.append(time.perf_counter() - started)
        return seconds


def _rates(sources: tuple[BenchmarkConfig, ...]) -> list[dict[str, object]]:
    problems = [problem for source in sources for problem in benchmarks.configured(source).problems("train")]
    every = {"night": "", "policy_digest": "", "tried": 8.0}
    return [
        {"problem_id": one.problem_id, "benchmark": one.benchmark, "level": one.level, "solved": float(at % 9), **every}
        for at, one in enumerate(problems)
    ]


def graded() -> tuple[float, int]:
    """Grade long answers to MATH's training problems. Return the seconds, and how many were correct."""
    benchmark = benchmarks.configured(BenchmarkConfig(name="math"))
    solutions, attempts = dict(benchmark.solutions()), list[Attempt]()
    for number, problem in enumerate((list(solutions) * 2)[:ANSWERS]):
        text = solutions[problem]
        if number % 2:
            text = text.replace("boxed{", "boxed{1+", 1)
        attempts.append(Attempt(problem, f"{(text * 9)[:CHARACTERS]}\n{text}"))
    started = time.perf_counter()
    scores = benchmark.score(attempts)
    return time.perf_counter() - started, sum(score.verdict == "correct" for score in scores)


if __name__ == "__main__":
    main()
