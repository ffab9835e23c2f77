"""Put questions to a checkpoint and grade its answers."""

import hashlib
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, NightConfig, SandboxConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards.data import benchmarks
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.evaluation.stored_answers import Answers, Rows, answer_inputs, load_answers, problem_key, save_answers
from tasks.rollouts.episodes import Episode, Game, Player, play
from tasks.rollouts.grade import scores_of
from tasks.rollouts.proven import sample_proven
from tasks.workers.worker import Worker, working_on

SAMPLED_SEED = 1  # for sampled answers, the same for every checkpoint

log = logging.getLogger("nightschool")


@dataclass
class Examiner:
    """Asks checkpoints the problems of an exam, and only those whose answers are not stored under `exams`.

    `answered`, `seconds`: how many problems it has put to a model, and what answering and grading took.
    """

    student: StudentConfig
    config: EngineConfig
    sandbox: SandboxConfig
    max_completion_tokens: int
    engine: Worker
    exams: Path
    answered: int = 0
    seconds: float = 0.0

    def ask(
        self, part: ExamPart, problems: Sequence[Problem], checkpoint: Path, samples: int = 1, temperature: float = 0.0
    ) -> Rows:
        """Return `samples` graded answers to each problem, in order: rows of the evaluations table.

        Each part is asked in engine calls of its own: other parts in the same batch would change the rounding.
        """
        benchmark = benchmarks.configured(part, self.sandbox)
        prompts = render_prompts(benchmark, problems, checkpoint, self.student)
        asked = {
            problem_key(problem, prompt): (problem, prompt) for problem, prompt in zip(problems, prompts, strict=True)
        }
        settings = (self.config, self.sandbox, self.max_completion_tokens)
        inputs = answer_inputs(checkpoint, part, benchmark, *settings, samples, temperature)
        known = load_answers(self.exams, inputs)
        missing = {name: pair for name, pair in asked.items() if name not in known}
        if missing:
            known |= self._ask(part, benchmark, missing, checkpoint, inputs, samples, temperature)
        return [row | {"benchmark": part.name} for name in asked for row in known[name]]

    def _ask(
        self,
        part: ExamPart,
        benchmark: Benchmark,
        missing: dict[str, tuple[Problem, list[int]]],
        checkpoint: Path,
        inputs: dict[str, str],
        samples: int,
        temperature: float,
    ) -> Answers:
        problems, prompts = (list(each) for each in zip(*missing.values(), strict=True))
        started = time.perf_counter()
        many = f" × {samples}" if temperature else ""
        with working_on(f"evaluate · {part.name} · {len(problems)}{many}"):  # times are kept by label: the size counts
            arguments = (problems, prompts, checkpoint, self.student, self.config, self.max_completion_tokens)
            rows = answer_questions(benchmark, *arguments, self.engine, samples=samples, temperature=temperature)
        seconds = time.perf_counter() - started
        self.answered, self.seconds = self.answered + len(problems), self.seconds + seconds
        answers = {name: rows[at * samples : (at + 1) * samples] for at, name in enumerate(missing)}
        save_answers(self.exams, inputs, answers, seconds)
        return answers


def count_stored(config: NightConfig, checkpoint: Path, problems: Sequence[Problem], exams: Path) -> int:
    """Return how many of these problems of the exam's target a checkpoint has answered before, in any order."""
    part = config.exam.target
    benchmark = benchmarks.configured(part, config.sandbox)
    settings = (config.sampler, config.sandbox, config.exam.max_completion_tokens)
    known = load_answers(exams, answer_inputs(checkpoint, part, benchmark, *settings))
    if not known:
        return 0
    prompts = render_prompts(benchmark, problems, checkpoint, config.student)
    return sum(problem_key(problem, prompt) in known for problem, prompt in zip(problems, prompts, strict=True))


def exam_problems(part: ExamPart, sandbox: SandboxConfig, order: str = "") -> list[Problem]:
    """Return the problems of a part of the exam: the first of the test split, in an order by the ids' hashes.

    In the split's own order they could all be of one level or subject. `order`: shuffles the same problems by this
    seed, for an exam that may end before the last one.
    """
    by_hash = sorted(
        benchmarks.configured(part, sandbox).problems("test"),
        key=lambda problem: hashlib.sha256(problem.problem_id.encode()).digest(),
    )
    problems = by_hash[: part.problems]
    return random.Random(order).sample(problems, len(problems)) if order else problems


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
    with Game(benchmark) as opened:
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
