"""The exam, which ends when a look at the checkpoints' greedy answers decides it, and the quiz."""

import itertools
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from conf.schema import SandboxConfig
from conf.sections.benchmark import ExamPart
from rewards.data import benchmarks
from rewards.data.contamination import exam_index
from tasks.evaluation.answering import Examiner, answer_questions, render_prompts
from tasks.evaluation.comparison import Comparison, compare
from tasks.evaluation.english import write_english
from tasks.evaluation.sequential import levels, verdict_of
from tasks.evaluation.stored_answers import Rows
from tasks.rollouts.verified import Player
from tasks.stage import stage
from tasks.tables import EVALUATIONS, write_table
from tasks.workers import engine_process

LOOK = "look.json"


@stage(retries=2, resources=("exams",))
def look(
    folder: Path,
    *,
    part: ExamPart,
    order: str,
    problems: int,
    looks: tuple[int, ...],
    alpha: float,
    champion: Player,
    candidate: Player,
    sandbox: SandboxConfig,
    exams: Path,
    versions: tuple[str, ...] = (),
) -> Mapping[str, float]:
    """Have both checkpoints answer a part's first `problems` problems, and write whether the answers decide the exam.

    Writes `look.json`, and stores the answers under `exams`. `order`: the seed for the order of the problems. `looks`:
    the number of problems at each planned look. `versions`: the versions of engine and graders, so that the stage runs
    again after an upgrade. Returns the number of new answers and the seconds that answering and grading took.
    """
    examiner = Examiner(sandbox, exams)
    chosen = benchmarks.exam_problems(part, sandbox, order)[:problems]
    before, after = (
        pd.DataFrame(examiner.ask(part, chosen, player), columns=EVALUATIONS.names) for player in (champion, candidate)
    )
    outcome = look_outcome(compare(part.name, before, after, seed=0), problems, looks, alpha)
    (folder / LOOK).write_text(json.dumps(outcome))
    return {"answered": float(examiner.answered), "seconds_answering": examiner.seconds}


def look_outcome(found: Comparison, problems: int, looks: tuple[int, ...], alpha: float) -> dict[str, Any]:
    """Return the content of `look.json`, given the comparison of both checkpoints on the first `problems` problems."""
    return {
        "problems": problems,
        "gained": found.gained,
        "lost": found.lost,
        "difference": found.difference,
        "p_value": found.p_value,
        "level": levels(looks, alpha)[looks.index(problems)],
        "verdict": verdict_of(problems, found.p_value, found.difference > 0, looks, alpha),
    }


@stage(retries=2, resources=("exams",))
def evaluate(
    folder: Path,
    *,
    parts: tuple[ExamPart, ...],
    player: Player,
    sandbox: SandboxConfig,
    exams: Path,
    versions: tuple[str, ...] = (),
    english: bool = False,
    order: str = "",
    first: int | None = None,
    sampled: bool = False,
) -> Mapping[str, float]:
    """Evaluate a checkpoint on the parts of an exam, reusing the answers that are stored under `exams`.

    Writes `evaluations.parquet` (the graded greedy answers), `samples.parquet` (the graded sampled answers, which no
    decision uses; empty unless `sampled` is set) and `excluded.json` (the ids of problems that the benchmarks left
    out). If `english` is set, also writes `english.json`: how well the checkpoint predicts English prose. `order`: the
    seed for the order of the problems. `first`: how many problems of the first part are asked (None: all). `versions`:
    the versions of engine and graders, so that the stage runs again after an upgrade.
    """
    examiner = Examiner(sandbox, exams)
    greedy, samples, excluded = Rows(), Rows(), {}
    for part in parts:
        problems = benchmarks.exam_problems(part, sandbox, order)
        problems = problems[:first] if part is parts[0] else problems
        greedy += examiner.ask(part, problems, player)
        if sampled and part.samples:
            samples += examiner.ask(part, problems, player._replace(temperature=1.0), part.samples)
        benchmark = benchmarks.configured(part, sandbox)
        benchmark.problems("test")
        excluded[part.name] = list(benchmark.excluded.get("test", ()))
    write_table(folder / "evaluations.parquet", EVALUATIONS, greedy)
    write_table(folder / "samples.parquet", EVALUATIONS, samples)
    (folder / "excluded.json").write_text(json.dumps(excluded))
    if english:
        write_english(folder, player, exams)
    return {"answered": float(examiner.answered), "seconds_answering": examiner.seconds}


@stage(retries=2)
def quiz(
    folder: Path,
    *,
    part: ExamPart,
    seed: str,
    player: Player,
    sandbox: SandboxConfig,
    exam_questions: tuple[str, ...],
) -> Mapping[str, float]:
    """Evaluate a checkpoint on a few training problems that match none of the `exam_questions`.

    Quizzes check lessons and show the night's trend; they never promote a model. Returns how many problems were `asked`
    and the seconds spent on answering and grading, excluding the engine's startup.
    """
    benchmark, exam = benchmarks.configured(part, sandbox), exam_index(exam_questions)
    there = list(dict.fromkeys(benchmark.draw(seed, 2 * (part.problems or 0))))
    shuffled = random.Random(seed).sample(there, len(there))
    others = (problem for problem in shuffled if not exam.has(problem.question))
    problems = list(itertools.islice(others, part.problems))
    prompts = render_prompts(benchmark, problems, player)
    player.call(engine_process.kv_tokens)  # starts the engine if needed
    started = time.perf_counter()
    rows = answer_questions(benchmark, problems, prompts, player)
    seconds = time.perf_counter() - started
    write_table(folder / "evaluations.parquet", EVALUATIONS, rows)
    return {"asked": float(len(problems)), "seconds_answering": seconds}
