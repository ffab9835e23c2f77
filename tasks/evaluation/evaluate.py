"""The exam: a checkpoint answers every problem once, greedily; parts may ask for sampled answers as well."""

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
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards import benchmarks
from rewards.contamination import exam_index
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.evaluation.cache import CachedExam, exam_inputs, load_exam, save_exam
from tasks.evaluation.english import write_english
from tasks.rollouts.episodes import Episode, Player, game, play
from tasks.rollouts.proven import sample_proven
from tasks.rollouts.score import scores_of
from tasks.stage import stage
from tasks.tables import EVALUATIONS, write_table
from tasks.workers import Worker, working_on

SAMPLED_SEED = 1  # for sampled answers, the same for every checkpoint

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
    english: bool = False,
) -> Mapping[str, float]:
    """Evaluate a checkpoint on the parts of an exam, reusing its cached exams under `exams`.

    Writes `evaluations.parquet`, a row for each problem with the greedy answer and its verdict; `samples.parquet`, the
    sampled answers, which decide nothing; and `excluded.json`, the problems that the benchmarks left out. With
    `english` also `english.json`, how well it predicts English (see `tasks/evaluation/english.py`). A part is cached if
    every answer could be graded. `versions`: of engine and graders, so that the stage runs again after an upgrade.
    Returns `seconds_sat`: what answering and grading took, also where that was another night.
    """
    exam: dict[str, CachedExam] = {}
    for part in parts:
        benchmark = benchmarks.configured(part, sandbox)
        problems = _chosen(benchmark, part)
        prompts = render_prompts(benchmark, problems, checkpoint, student)
        inputs = exam_inputs(checkpoint, part, benchmark, problems, prompts, config, sandbox, max_completion_tokens)
        if (cached := load_exam(exams, inputs)) is None:
            arguments = (problems, prompts, checkpoint, student, config, max_completion_tokens, engine)
            cached = _evaluate_part(part, benchmark, *arguments)
            save_exam(exams, inputs, cached)
        else:
            log.info("%s: the cached exam of %s is reused", part.name, checkpoint.name)
        exam[part.name] = cached
    write_table(folder / "evaluations.parquet", EVALUATIONS, [row for part in exam.values() for row in part.greedy])
    write_table(folder / "samples.parquet", EVALUATIONS, [row for part in exam.values() for row in part.sampled])
    (folder / "excluded.json").write_text(json.dumps({name: part.excluded for name, part in exam.items()}))
    if english:
        write_english(folder, checkpoint, student, config, engine)
    return {"seconds_sat": sum(part.seconds for part in exam.values())}


def _evaluate_part(part: ExamPart, benchmark: Benchmark, problems: Sequence[Problem], *arguments: Any) -> CachedExam:
    """Evaluate one part in engine calls of its own: other parts in the same batch would change the rounding."""
    started = time.perf_counter()
    label = f"{evaluate.name} · {part.name} · {len(problems)}"  # times are kept by label, so the size is part of it
    with working_on(label):
        greedy = answer_questions(benchmark, problems, *arguments)
    sampled = []
    if part.samples:
        with working_on(f"{label} × {part.samples}"):
            drawn = {"samples": part.samples, "temperature": part.temperature}
            sampled = answer_questions(benchmark, problems, *arguments, **drawn)
    greedy, sampled = ([row | {"benchmark": part.name} for row in rows] for rows in (greedy, sampled))
    excluded = list(benchmark.excluded.get("test", ()))
    return CachedExam(greedy, sampled, excluded, seconds=time.perf_counter() - started)


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
    """Evaluate a checkpoint on a few training problems, none of which asks what the exam asks (`exam_questions`).

    A quiz shows the trend during the night and decides nothing.
    """
    benchmark, exam = benchmarks.configured(part, sandbox), exam_index(exam_questions)
    there = benchmark.draw(seed, part.problems)
    shuffled = random.Random(seed).sample(there, len(there))
    others = (problem for problem in shuffled if not exam.asks(problem.question))
    problems = list(itertools.islice(others, part.problems))
    prompts = render_prompts(benchmark, problems, checkpoint, student)
    rows = answer_questions(benchmark, problems, prompts, checkpoint, student, config, max_completion_tokens, engine)
    write_table(folder / "evaluations.parquet", EVALUATIONS, rows)


def exam_problems(part: ExamPart, sandbox: SandboxConfig) -> list[Problem]:
    """Return the problems of a part of the exam: the first of the test split, in an order by the ids' hashes.

    In the split's own order they could all be of one level or subject.
    """
    return _chosen(benchmarks.configured(part, sandbox), part)


def _chosen(benchmark: Benchmark, part: ExamPart) -> list[Problem]:
    shuffled = sorted(
        benchmark.problems("test"), key=lambda problem: hashlib.sha256(problem.problem_id.encode()).digest()
    )
    return shuffled[part.after :][: part.problems]


def render_prompts(
    benchmark: Benchmark, problems: Sequence[Problem], checkpoint: Path, student: StudentConfig
) -> list[list[int]]:
    """Return the token ids with which each problem is put to a checkpoint."""
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    messages = ([{"role": "user", "content": benchmark.prompt(problem)}] for problem in problems)
    return [prompt_tokens(tokenizer, message, student) for message in messages]


def answer_questions(
    benchmark: Benchmark,
    problems: Sequence[Problem],
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
    """Return `samples` graded answers to each problem, in order, as rows of the evaluations table.

    `prompts`: from `render_prompts`. A question that is too long for the engine gets empty answers: every checkpoint
    fails it alike.
    """
    if benchmark.environment is not None:
        player = Player(checkpoint, student, config, engine, max_completion_tokens, temperature)
        return _play(benchmark, problems, prompts, player, samples)
    short = [index for index, prompt in enumerate(prompts) if len(prompt) < config.max_model_len]
    if len(short) < len(prompts):
        log.warning(
            "%d questions of the exam are too long to be asked: raise engine.max_model_len", len(prompts) - len(short)
        )
    groups, _ = sample_proven(
        engine,
        checkpoint,
        config,
        [prompts[index] for index in short],
        samples,
        seed=SAMPLED_SEED if temperature else 0,
        temperature=temperature,
        max_tokens=max_completion_tokens,
        trust_remote_code=student.trust_remote_code,
    )
    unasked = [Rollout("", 0, 0, [], [], [], [], "length", "", checkpoint.name)] * samples
    answers = dict.fromkeys(range(len(prompts)), unasked)
    answers |= dict(zip(short, groups, strict=True))
    return _graded(benchmark, problems, [answers[index] for index in range(len(prompts))], engine)


def _play(
    benchmark: Benchmark, problems: Sequence[Problem], prompts: Sequence[list[int]], player: Player, samples: int
) -> list[dict[str, Any]]:
    """Return `samples` graded episodes from each problem, as rows of the evaluations table."""
    episodes = [
        Episode(problem, group, sample, prompt)
        for group, (problem, prompt) in enumerate(zip(problems, prompts, strict=True))
        for sample in range(samples)
    ]
    with game(benchmark) as opened:
        opened.begin(episodes)
        play(episodes, opened, player, str(SAMPLED_SEED if player.temperature else 0), turns=None)
    rollouts = [episode.rollout() for episode in episodes]
    by_problem = [rollouts[start : start + samples] for start in range(0, len(rollouts), samples)]
    return _graded(benchmark, problems, by_problem)


def _graded(
    benchmark: Benchmark,
    problems: Sequence[Problem],
    answers: Sequence[Sequence[Rollout]],
    engine: Worker | None = None,
) -> list[dict[str, Any]]:
    answered = [
        (problem, sample, rollout)
        for problem, rollouts in zip(problems, answers, strict=True)
        for sample, rollout in enumerate(rollouts)
    ]
    attempts = [
        Attempt(problem, rollout.text, finish_reason=rollout.finish_reason, tokens=rollout.written)
        for problem, _, rollout in answered
    ]
    scores = scores_of(benchmark, attempts, engine)  # in one call: starting a grader may take a second
    return [_row(*answer, score) for answer, score in zip(answered, scores, strict=True)]


def _row(problem: Problem, sample: int, rollout: Rollout, score: Score) -> dict[str, Any]:
    return {
        "policy_digest": rollout.policy_digest,
        "benchmark": problem.benchmark,
        "problem_id": problem.problem_id,
        "sample": sample,
        "verdict": score.verdict,
        "question": problem.question,
        "text": rollout.text,
        "tokens": rollout.written,
        "finish_reason": rollout.finish_reason,
        "correct": None if score.reward is None else score.verdict == "correct",
        "level": problem.level,
        "subject": problem.subject,
        "value": score.parts.get("value") if score.turns else None,
        "turns": len(score.turns) or None,
        "valid": score.parts.get("valid") if score.turns else None,
    }
