"""The exam: every problem once, greedily, for one checkpoint."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, ExamPart, StudentConfig
from models.policy import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards import benchmarks
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks import engine as in_engine
from tasks.select_prompts import training_problems
from tasks.stage import stage
from tasks.tables import EVALUATIONS, write_table
from tasks.workers import Worker


@stage(tags=["engine", "exam"], retries=2, means=("engine",))
def evaluate(
    folder: Path,
    *,
    parts: tuple[ExamPart, ...],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> None:
    """One row for every problem of every part: what the checkpoint answered, greedily, and the verdict on it."""
    questions = [(part.name, benchmark, problem) for part in parts for benchmark, problem in exam_problems(part)]
    rows = sit([(b, p) for _, b, p in questions], checkpoint, student, config, max_completion_tokens, engine)
    named = [row | {"benchmark": name} for row, (name, _, _) in zip(rows, questions, strict=True)]
    write_table(folder / "evaluations.parquet", EVALUATIONS, named)


@stage(tags=["engine", "quiz"], retries=2, means=("engine",))
def quiz(
    folder: Path,
    *,
    part: ExamPart,
    seed: str,
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> None:
    """A small exam on training problems: it shows the trend during the night and chooses nothing."""
    benchmark = benchmarks.load(part.benchmark, part.source, part.levels)
    problems = [(benchmark, problem) for problem in training_problems(benchmark, seed, part.problems)[: part.problems]]
    rows = sit(problems, checkpoint, student, config, max_completion_tokens, engine)
    write_table(folder / "evaluations.parquet", EVALUATIONS, rows)


def exam_problems(part: ExamPart) -> list[tuple[Benchmark, Problem]]:
    """The problems of a part of the exam: the first of the test split, in its fixed order."""
    benchmark = benchmarks.load(part.benchmark, part.source, part.levels)
    return [(benchmark, problem) for problem in benchmark.problems("test")[: part.problems]]


def sit(
    questions: Sequence[tuple[Benchmark, Problem]],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> list[dict[str, Any]]:
    """Greedy answers to the questions, judged: rows of the evaluations table, in order."""
    tokenizer = load_tokenizer(checkpoint)
    prompts = [
        prompt_tokens(tokenizer, [{"role": "user", "content": benchmark.prompt(problem)}], student)
        for benchmark, problem in questions
    ]
    answers = engine.call(
        in_engine.sample,
        checkpoint,
        config,
        prompts,
        1,
        seed=0,
        temperature=0.0,
        max_tokens=max_completion_tokens,
        trust_remote_code=student.trust_remote_code,
    )
    return [
        _row(problem, rollout, _score(benchmark, problem, rollout))
        for (benchmark, problem), (rollout,) in zip(questions, answers, strict=True)
    ]


def _score(benchmark: Benchmark, problem: Problem, rollout: Rollout) -> Score:
    attempt = Attempt(problem, rollout.text, finish_reason=rollout.finish_reason, tokens=len(rollout.token_ids))
    return benchmark.score([attempt])[0]


def _row(problem: Problem, rollout: Rollout, score: Score) -> dict[str, Any]:
    return {
        "policy_digest": rollout.policy_digest,
        "benchmark": problem.benchmark,
        "problem_id": problem.problem_id,
        "sample": 0,
        "verdict": score.verdict,
        "question": problem.question,
        "text": rollout.text,
        "tokens": len(rollout.token_ids),
        "finish_reason": rollout.finish_reason,
        "correct": None if score.reward is None else score.verdict == "correct",
        "level": problem.level,
    }
