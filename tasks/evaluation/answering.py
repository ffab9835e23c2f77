"""Put questions to a checkpoint and grade its answers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.schema import SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.log import log
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from models.transcript import Transcript
from rewards.data import benchmarks
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.evaluation.stored_answers import Rows, answer_inputs, load_answers, problem_key, save_answers
from tasks.rollouts.episodes import Episode, Game, play
from tasks.rollouts.grade import scores_of
from tasks.rollouts.verified import Player, sample_verified
from tasks.workers.worker import working_on

SAMPLED_SEED = 1  # seed of sampled answers, the same for every checkpoint


@dataclass
class Examiner:
    """Asks checkpoints the problems of an exam, and reuses the answers that are stored under `exams`.

    `answered`: the number of problems without a stored answer. `seconds`: how long answering and grading those took.
    """

    sandbox: SandboxConfig
    exams: Path
    answered: int = 0
    seconds: float = 0.0

    def ask(self, part: ExamPart, problems: Sequence[Problem], player: Player, samples: int = 1) -> Rows:
        """Return `samples` graded answers to each problem, in order, as rows of the evaluations table.

        Each exam part gets its own engine calls, because mixing parts in a batch would change floating-point rounding.
        """
        benchmark = benchmarks.configured(part, self.sandbox)
        prompts = render_prompts(benchmark, problems, player)
        asked = {problem_key(*pair): pair for pair in zip(problems, prompts, strict=True)}
        inputs = answer_inputs(player, part, benchmark, self.sandbox, samples)
        known = load_answers(self.exams, inputs)
        if missing := [name for name in asked if name not in known]:
            started = time.perf_counter()
            new_problems, new_prompts = zip(*(asked[name] for name in missing), strict=True)
            # times are recorded by label, so the label includes the size
            many = f" × {samples}" if player.temperature else ""
            with working_on(f"evaluate · {part.name} · {len(missing)}{many}"):
                rows = answer_questions(benchmark, new_problems, new_prompts, player, samples)
            seconds = time.perf_counter() - started
            self.answered, self.seconds = self.answered + len(missing), self.seconds + seconds
            answers = {name: rows[at * samples : (at + 1) * samples] for at, name in enumerate(missing)}
            save_answers(self.exams, inputs, answers, seconds)
            known |= answers
        return [row | {"benchmark": part.name} for name in asked for row in known[name]]


def count_stored(
    player: Player, part: ExamPart, problems: Sequence[Problem], sandbox: SandboxConfig, exams: Path
) -> int:
    """Return how many of these problems of an exam's part a checkpoint has already answered."""
    benchmark = benchmarks.configured(part, sandbox)
    known = load_answers(exams, answer_inputs(player, part, benchmark, sandbox))
    prompts = render_prompts(benchmark, problems, player)
    return sum(problem_key(*asked) in known for asked in zip(problems, prompts, strict=True))


def render_prompts(benchmark: Benchmark, problems: Sequence[Problem], player: Player) -> list[list[int]]:
    """Return each problem's prompt as the token ids that a checkpoint receives."""
    tokenizer = load_tokenizer(player.checkpoint, player.student.trust_remote_code)
    messages = ([{"role": "user", "content": benchmark.prompt(problem)}] for problem in problems)
    return [prompt_tokens(tokenizer, message, player.student) for message in messages]


def answer_questions(
    benchmark: Benchmark, problems: Sequence[Problem], prompts: Sequence[list[int]], player: Player, samples: int = 1
) -> list[dict[str, Any]]:
    """Return `samples` graded answers to each problem, in order, as rows of the evaluations table.

    `prompts`: the output of `render_prompts`. A question that is too long for the engine gets empty answers, so that
    every checkpoint fails it.
    """
    if benchmark.environment is None:
        rollouts = _written(prompts, player, samples)
    else:
        rollouts = _played(benchmark, problems, prompts, player, samples)
    asked = [(problem, sample) for problem in problems for sample in range(samples)]
    attempts = [
        Attempt(problem, rollout.text, finish_reason=rollout.finish_reason, tokens=rollout.written)
        for (problem, _), rollout in zip(asked, rollouts, strict=True)
    ]
    scores = scores_of(benchmark, attempts, player.engine)  # in one call: starting a grader may take a second
    return [_row(*pair, rollout, score) for pair, rollout, score in zip(asked, rollouts, scores, strict=True)]


def _written(prompts: Sequence[list[int]], player: Player, samples: int) -> list[Rollout]:
    """Return `samples` answers to each prompt, grouped by prompt."""
    short = [index for index, prompt in enumerate(prompts) if len(prompt) < player.config.max_model_len]
    if too_long := len(prompts) - len(short):
        log.warning("%d questions of the exam are too long to be asked: raise engine.max_model_len", too_long)
    seed = SAMPLED_SEED if player.temperature else 0
    groups, _ = sample_verified(player, [prompts[index] for index in short], samples, seed=seed)
    unasked = [Rollout("", 0, 0, [], [], [], [], "length", "", player.checkpoint.name)] * samples
    answers = dict(zip(short, groups, strict=True))
    return [rollout for index in range(len(prompts)) for rollout in answers.get(index, unasked)]


def _played(
    benchmark: Benchmark, problems: Sequence[Problem], prompts: Sequence[list[int]], player: Player, samples: int
) -> list[Rollout]:
    """Return `samples` episodes of each problem, grouped by problem. One that is too long to begin has no turns."""
    episodes = [
        Episode(problem, group, sample, [Transcript(prompt)])
        for group, (problem, prompt) in enumerate(zip(problems, prompts, strict=True))
        for sample in range(samples)
    ]
    for episode in episodes:
        if len(episode.acting.context) >= player.config.max_model_len:
            episode.finish = "length"
    with Game(benchmark) as opened:
        opened.begin(episodes)
        play(episodes, opened, player, str(SAMPLED_SEED if player.temperature else 0), turns=None)
    return [episode.rollout() for episode in episodes]


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
