"""The exam: every problem once, greedily, for one checkpoint; and, where a part asks for them, sampled answers too."""

import hashlib
import itertools
import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from models.checkpoint import base_of
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards import benchmarks
from rewards.contamination import exam_index
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.evaluation.cache import CachedExam, find, keep, terms
from tasks.rollouts.sample import sample_proven
from tasks.rollouts.score import scores_of
from tasks.rollouts.select_prompts import training_problems
from tasks.stage import stage
from tasks.tables import EVALUATIONS, write_table
from tasks.workers import Worker, working_on

SAMPLED_SEED = 1  # of the answers besides the greedy ones: every checkpoint's are drawn alike

log = logging.getLogger("nightschool")


@stage(retries=2, resources=("engine", "exams"))
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
    exams: Path,
    versions: tuple[str, ...] = (),
) -> Mapping[str, float]:
    """One row for every problem of every part: what the checkpoint answered, greedily, and the verdict on it.

    `samples.parquet` has the sampled answers of the parts that ask for `samples`; nothing is decided by them.
    `excluded.json` names the problems that the benchmarks themselves left out. Each part is sat by itself, and kept
    under `exams` if every answer could be graded: what this checkpoint has sat already is taken from there.
    `seconds_sat`: what sitting all of it took, whenever that was. `versions`: of what answers and judges; with others
    the stage runs again.
    """
    found: dict[str, CachedExam] = {}
    for part in parts:
        questions = exam_problems(part, sandbox)
        prompts = rendered(questions, checkpoint, student)
        wanted = terms(checkpoint, part, questions, prompts, config, sandbox, max_completion_tokens)
        if (known := find(exams, wanted)) is None:
            known = _sat(part, questions, prompts, checkpoint, student, config, max_completion_tokens, engine)
            keep(exams, wanted, known)
        else:
            log.info("%s has sat %s before", checkpoint.name, part.name)
        found[part.name] = known
    greedy = [row for part in found.values() for row in part.greedy]
    write_table(folder / "evaluations.parquet", EVALUATIONS, greedy)
    write_table(folder / "samples.parquet", EVALUATIONS, [row for part in found.values() for row in part.sampled])
    (folder / "excluded.json").write_text(json.dumps({name: part.excluded for name, part in found.items()}))
    return {"seconds_sat": sum(part.seconds for part in found.values())}


def _sat(
    part: ExamPart,
    questions: Sequence[tuple[Benchmark, Problem]],
    prompts: Sequence[list[int]],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> CachedExam:
    """A part of the exam, in calls of its own: which other parts there are must not change how sums are rounded."""
    started = time.perf_counter()
    arguments = (questions, prompts, checkpoint, student, config, max_completion_tokens, engine)
    called = f"{evaluate.name} · {part.name} · {len(questions)}"  # calls of other sizes take other times
    with working_on(called):
        greedy = sit(*arguments)
    with working_on(f"{called} × {part.samples}"):
        sampled = sit(*arguments, samples=part.samples, temperature=part.temperature) if part.samples else []
    excluded = benchmarks.excluded(questions[0][0], "test") if questions else []
    named = ([row | {"benchmark": part.name} for row in rows] for rows in (greedy, sampled))
    return CachedExam(*named, excluded=excluded, seconds=time.perf_counter() - started)


@stage(retries=2, resources=("engine",))
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
    exam_questions: tuple[str, ...],
    engine: Worker,
) -> None:
    """A small exam on training problems: it shows the trend during the night and chooses nothing.

    None of them asks what the exam asks (`exam_questions`), word for word or nearly.
    """
    benchmark, exam = benchmarks.configured(part, sandbox), exam_index(exam_questions)
    there = training_problems(benchmark, seed, part.problems)
    drawn = random.Random(seed).sample(there, len(there))
    others = (problem for problem in drawn if not exam.asks(problem.question))
    problems = [(benchmark, problem) for problem in itertools.islice(others, part.problems)]
    prompts = rendered(problems, checkpoint, student)
    rows = sit(problems, prompts, checkpoint, student, config, max_completion_tokens, engine)
    write_table(folder / "evaluations.parquet", EVALUATIONS, rows)


def exam_problems(part: ExamPart, sandbox: SandboxConfig) -> list[tuple[Benchmark, Problem]]:
    """The problems of a part of the exam: the first of the test split in a fixed order by lot.

    In the split's own order they would be of one level, or of one subject.
    """
    benchmark = benchmarks.configured(part, sandbox)
    by_lot = sorted(benchmark.problems("test"), key=lambda one: hashlib.sha256(one.problem_id.encode()).digest())
    return [(benchmark, problem) for problem in by_lot[part.after :][: part.problems]]


def rendered(
    questions: Sequence[tuple[Benchmark, Problem]], checkpoint: Path, student: StudentConfig
) -> list[list[int]]:
    """The questions as they are put to a checkpoint: token ids."""
    tokenizer = load_tokenizer(base_of(checkpoint), student.trust_remote_code)
    return [
        prompt_tokens(tokenizer, [{"role": "user", "content": benchmark.prompt(problem)}], student)
        for benchmark, problem in questions
    ]


def sit(
    questions: Sequence[tuple[Benchmark, Problem]],
    prompts: Sequence[list[int]],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
    *,
    samples: int = 1,
    temperature: float = 0.0,
) -> list[dict[str, Any]]:
    """Answers to the questions (greedy ones, if not told otherwise), judged: rows of the evaluations table, in order.

    `prompts`: the questions as `rendered` puts them. `samples`: answers to each. A question that is too long for the
    engine gets empty ones: it counts, for each who sits the exam alike.
    """
    short = [place for place, prompt in enumerate(prompts) if len(prompt) < config.max_model_len]
    if len(short) < len(prompts):
        too_long = len(prompts) - len(short)
        log.warning("%d questions of the exam are too long to be asked: raise engine.max_model_len", too_long)
    answers = sample_proven(
        engine,
        checkpoint,
        config,
        [prompts[place] for place in short],
        samples,
        seed=SAMPLED_SEED if temperature else 0,
        temperature=temperature,
        max_tokens=max_completion_tokens,
        trust_remote_code=student.trust_remote_code,
    )
    given = dict(zip(short, answers, strict=True))
    answered = [
        (benchmark, problem, number, rollout)
        for place, (benchmark, problem) in enumerate(questions)
        for number, rollout in enumerate(given.get(place) or [_unasked(prompts[place], checkpoint.name)] * samples)
    ]
    scores = _judged([(benchmark, problem, rollout) for benchmark, problem, _, rollout in answered])
    return [
        _row(problem, number, rollout, score)
        for (_, problem, number, rollout), score in zip(answered, scores, strict=True)
    ]


def _unasked(prompt: list[int], digest: str) -> Rollout:
    """The answer to a question that could not be asked."""
    return Rollout("", 0, 0, prompt, [], [], [], "length", "", digest)


def _judged(answered: Sequence[tuple[Benchmark, Problem, Rollout]]) -> list[Score]:
    """A score for each answer; a benchmark judges all of its own at once, because to begin may cost it a second."""
    attempts = [
        Attempt(problem, rollout.text, finish_reason=rollout.finish_reason, tokens=len(rollout.token_ids))
        for _, problem, rollout in answered
    ]
    scores: dict[int, Score] = {}
    for judge in {id(benchmark): benchmark for benchmark, _, _ in answered}.values():
        own = [place for place, (benchmark, _, _) in enumerate(answered) if benchmark is judge]
        scores |= dict(zip(own, scores_of(judge, [attempts[place] for place in own]), strict=True))
    return [scores[place] for place in range(len(answered))]


def _row(problem: Problem, number: int, rollout: Rollout, score: Score) -> dict[str, Any]:
    return {
        "policy_digest": rollout.policy_digest,
        "benchmark": problem.benchmark,
        "problem_id": problem.problem_id,
        "sample": number,
        "verdict": score.verdict,
        "question": problem.question,
        "text": rollout.text,
        "tokens": len(rollout.token_ids),
        "finish_reason": rollout.finish_reason,
        "correct": None if score.reward is None else score.verdict == "correct",
        "level": problem.level,
        "subject": problem.subject,
    }
