"""The exam: every problem once, greedily, for one checkpoint."""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, ExamPart, SandboxConfig, StudentConfig
from models.checkpoint import base_of
from models.policy import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards import benchmarks
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.proven_sampling import sample_proven
from tasks.select_prompts import training_problems
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, write_table
from tasks.workers import Worker

OUTPUTS = ("evaluations.parquet", "excluded.json")

log = logging.getLogger("nightschool")


@stage(tags=["engine", "exam"], retries=2, means=("engine", "sat"))
def evaluate(
    folder: Path,
    *,
    parts: tuple[ExamPart, ...],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    sandbox: SandboxConfig,
    max_completion_tokens: int,
    engine: Worker,
    sat: Mapping[Path, Artifact],
) -> None:
    """One row for every problem of every part: what the checkpoint answered, greedily, and the verdict on it.

    `excluded.json` names the problems that the benchmarks themselves left out. `sat`: the same exam of other
    checkpoints; what this one has sat already, under another name, is taken from there.
    """
    if checkpoint in sat:
        for file in OUTPUTS:
            shutil.copyfile(sat[checkpoint].folder / file, folder / file)
        return
    asked: list[tuple[Benchmark, Problem]] = []
    names: list[str] = []
    unreadable: dict[str, list[str]] = {}
    for part in parts:
        problems = exam_problems(part, sandbox)
        asked += problems
        names += [part.name] * len(problems)
        if problems:
            unreadable[part.name] = benchmarks.excluded(problems[0][0], "test")
    rows = sit(asked, checkpoint, student, config, max_completion_tokens, engine)
    named = [row | {"benchmark": name} for row, name in zip(rows, names, strict=True)]
    write_table(folder / "evaluations.parquet", EVALUATIONS, named)
    (folder / "excluded.json").write_text(json.dumps(unreadable))


@stage(tags=["engine", "quiz"], retries=2, means=("engine",))
def quiz(
    folder: Path,
    *,
    part: ExamPart,
    seed: str,
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    sandbox: SandboxConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> None:
    """A small exam on training problems: it shows the trend during the night and chooses nothing."""
    benchmark = benchmarks.configured(part, sandbox)
    problems = [(benchmark, problem) for problem in training_problems(benchmark, seed, part.problems)[: part.problems]]
    rows = sit(problems, checkpoint, student, config, max_completion_tokens, engine)
    write_table(folder / "evaluations.parquet", EVALUATIONS, rows)


def exam_problems(part: ExamPart, sandbox: SandboxConfig) -> list[tuple[Benchmark, Problem]]:
    """The problems of a part of the exam, in the test split's fixed order."""
    benchmark = benchmarks.configured(part, sandbox)
    return [(benchmark, problem) for problem in benchmark.problems("test")[part.after :][: part.problems]]


def sit(
    questions: Sequence[tuple[Benchmark, Problem]],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> list[dict[str, Any]]:
    """Greedy answers to the questions, judged: rows of the evaluations table, in order.

    A question that is too long for the engine gets the empty answer: it counts, for each who sits the exam alike.
    """
    tokenizer = load_tokenizer(base_of(checkpoint), student.trust_remote_code)
    prompts = [
        prompt_tokens(tokenizer, [{"role": "user", "content": benchmark.prompt(problem)}], student)
        for benchmark, problem in questions
    ]
    short = [place for place, prompt in enumerate(prompts) if len(prompt) < config.max_model_len]
    if len(short) < len(prompts):
        too_long = len(prompts) - len(short)
        log.warning("%d questions of the exam are too long to be asked: raise engine.max_model_len", too_long)
    answers = sample_proven(
        engine,
        checkpoint,
        config,
        [prompts[place] for place in short],
        1,
        seed=0,
        temperature=0.0,
        max_tokens=max_completion_tokens,
        trust_remote_code=student.trust_remote_code,
    )
    given = dict(zip(short, (rollout for (rollout,) in answers), strict=True))
    rollouts = [given.get(place) or _unasked(prompt, checkpoint.name) for place, prompt in enumerate(prompts)]
    scores = _judged(questions, rollouts)
    return [_row(p, rollout, score) for (_, p), rollout, score in zip(questions, rollouts, scores, strict=True)]


def _unasked(prompt: list[int], digest: str) -> Rollout:
    """The answer to a question that could not be asked."""
    return Rollout("", 0, 0, prompt, [], [], [], "length", "", digest)


def _judged(questions: Sequence[tuple[Benchmark, Problem]], rollouts: Sequence[Rollout]) -> list[Score]:
    """A score for each answer; a benchmark judges all of its own at once, because to begin may cost it a second."""
    attempts = [
        Attempt(problem, rollout.text, finish_reason=rollout.finish_reason, tokens=len(rollout.token_ids))
        for (_, problem), rollout in zip(questions, rollouts, strict=True)
    ]
    scores: dict[int, Score] = {}
    for judge in {id(benchmark): benchmark for benchmark, _ in questions}.values():
        own = [place for place, (benchmark, _) in enumerate(questions) if benchmark is judge]
        scores |= dict(zip(own, judge.score([attempts[place] for place in own]), strict=True))
    return [scores[place] for place in range(len(questions))]


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
