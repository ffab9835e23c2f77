"""How much of an optimizer step is signal? Choices of what a round trains on, compared by their gradients.

    python -m benchmarks.gradients --students FOLDER … [--batches 12] [--json]

On two cores, five minutes of rounds gain 0.05 ± 0.05 in the exam: too little to tell such choices apart. Gradients can.
A student answers batches of 32 prompts × 8, and each choice gives one gradient per batch. This gradient is divided by
Adam's denominator and compared with the mean gradient of all 8 completions over the other batches: the cosine is the
share of a step in the common direction of the rounds. *Speed* is the cosine per second of sampling and update. The
interval comes from a bootstrap over batches, each paired with "all 8" of the same batch.
"""

import argparse
import itertools
import json
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine.child import engine
from benchmarks.outputs.page import markdown
from conf.load import STARTER, load_night
from conf.schema import NightConfig
from flows import environment
from models.engine.environment import trainer_environment
from models.rollout import Rollout
from rewards.arithmetic import Arithmetic
from rewards.verifier import Attempt
from tasks.workers import engine_process
from tasks.workers.worker import Worker

PROMPTS, SIZE = 32, 8
ALL, LOOK = "all 8", "twice the prompts, 4 each, 8 if mixed"
CHOICES = (
    ALL,
    "4 of 8, the most varied",
    "twice the prompts × 4",
    "half the prompts",
    LOOK,
    "divided by std",
    "divided by p",
)
STRIDE = 16  # compare every 16th of a gradient's 135 million numbers
RESAMPLES = 2000

Batch = tuple[list[list[Rollout]], list[list[float]]]  # groups, and their rewards


def main() -> None:
    """Compare the choices by each student's gradients, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=Path, nargs="+", required=True, help="checkpoints after a lesson")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--json", action="store_true", help="print one line per student")
    options = parser.parse_args()
    environment.prepare()
    found = []
    for student in options.students:
        found.append(compare(student.resolve(), options.batches))
        print(json.dumps(found[-1]) if options.json else f"{student.name}: done", flush=True)
    print(table(found))


def compare(student: Path, batches: int) -> dict[str, Any]:
    """Return a student's cosines and seconds of update by choice, and its seconds of sampling."""
    config = load_night(STARTER)
    with engine() as worker:
        sampled, seconds = sample(student, config, worker, batches)
    with closing(Worker("trainer", trainer_environment())) as trainer:
        cosines, updates = trainer.call(differentiate, student, config, sampled)
    looks = [answers_after_look(batch, after) for batch, after in zip(sampled, [*sampled[1:], sampled[0]], strict=True)]
    answers = {"half the prompts": 0.5, LOOK: float(np.mean(looks)) / (PROMPTS * SIZE)}  # others: 1
    return {"student": student.name, "sampling": seconds, "answers": answers, "updates": updates, "cosines": cosines}


def sample(student: Path, config: NightConfig, worker: Worker, batches: int) -> tuple[list[Batch], float]:
    """Return graded batches of answers to training problems, and the median seconds of sampling a batch."""
    from tasks.evaluation.answering import render_prompts  # Prefect reads the environment when it is imported

    benchmark = Arithmetic(levels=("1", "2"))
    problems = benchmark.draw("gradients", PROMPTS * batches)
    prompts = render_prompts(benchmark, problems, student, config.student)
    found, seconds = [], []
    for number, start in enumerate(range(0, PROMPTS * batches, PROMPTS)):
        asked = problems[start : start + PROMPTS]
        groups, figures = worker.call(
            engine_process.sample,
            student,
            config.sampler,
            prompts[start : start + PROMPTS],
            SIZE,
            seed=number,
            temperature=config.grpo.temperature,
            max_tokens=config.grpo.max_completion_tokens,
        )
        rewards = []
        for group, (problem, rollouts) in enumerate(zip(asked, groups, strict=True), start):
            rollouts[:] = [replace(rollout, group=group) for rollout in rollouts]  # unique over the batches
            scores = benchmark.score([Attempt(problem, rollout.text) for rollout in rollouts])
            rewards.append([float(score.reward or 0.0) for score in scores])
        found.append((groups, rewards))
        seconds.append(figures["generate"])
    return found, float(np.median(seconds))


def differentiate(
    student: Path, config: NightConfig, batches: Sequence[Batch]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return each choice's cosines (one per batch) and its median seconds of update. Runs in the trainer's process."""
    import torch

    from models.trainer import Trainer

    trainer = Trainer.load(student, config.trainer)
    gradients: dict[str, list[Any]] = {choice: [] for choice in CHOICES}
    seconds: dict[str, list[float]] = {choice: [] for choice in CHOICES}

    def keep() -> float:
        parts = [gradient.flatten()[::STRIDE].clone() for gradient in trainer.weights.gradients.values()]
        kept.append(torch.cat(parts))
        return 0.0

    trainer.weights.step = keep
    for number, choice in itertools.product(range(len(batches)), CHOICES):
        kept: list[Any] = []
        rollouts, advantages = chosen(choice, batches[number], batches[(number + 1) % len(batches)])
        started = time.perf_counter()
        trainer.update(rollouts, advantages)
        seconds[choice].append(time.perf_counter() - started)
        gradients[choice].append(kept[0] if kept else torch.zeros_like(gradients[ALL][-1]))  # too few groups
    whole = torch.stack(gradients[ALL])
    denominator = whole.square().mean(dim=0).sqrt() + 1e-8
    total = whole.sum(dim=0)
    cosines: dict[str, list[float]] = {choice: [] for choice in CHOICES}
    for choice, number in itertools.product(CHOICES, range(len(batches))):
        others = (total - whole[number] - whole[(number + 1) % len(batches)]) / denominator
        step = gradients[choice][number] / denominator
        cosines[choice].append(float(torch.nn.functional.cosine_similarity(step, others, dim=0)))
    return cosines, {choice: float(np.median(taken)) for choice, taken in seconds.items()}


def chosen(choice: str, batch: Batch, following: Batch) -> tuple[list[Rollout], list[float]]:
    """Return the rollouts that a choice trains on, and their advantages. "twice the prompts" also uses `following`."""
    import torch

    from models.advantages import group_advantages, most_varied

    groups, rewards = batch[0], torch.tensor(batch[1])
    match choice:
        case "4 of 8, the most varied":
            advantages = group_advantages(rewards.masked_fill(~most_varied(rewards, SIZE // 2), float("nan")))
        case "twice the prompts × 4":
            groups = [group[: SIZE // 2] for group in (*batch[0], *following[0])]
            advantages = group_advantages(torch.tensor([*batch[1], *following[1]])[:, : SIZE // 2])
        case _ if choice == LOOK:
            both = torch.tensor([*batch[1], *following[1]])
            mixed = _mixed(both)
            groups = [group for group, more in zip((*batch[0], *following[0]), mixed, strict=True) if more]
            advantages = group_advantages(both[mixed])
        case "half the prompts":
            groups = groups[: PROMPTS // 2]
            advantages = group_advantages(rewards[: PROMPTS // 2])
        case "divided by std":
            advantages = group_advantages(rewards, "std")
        case "divided by p":  # MaxRL, arXiv 2602.02710
            advantages = group_advantages(rewards) / rewards.mean(dim=1, keepdim=True).clamp(min=1 / SIZE)
        case _:
            advantages = group_advantages(rewards)
    return [rollout for group in groups for rollout in group], advantages.flatten().tolist()


def answers_after_look(batch: Batch, following: Batch) -> int:
    """Return how many answers are sampled if the prompts of both batches get 4 answers first, and mixed ones get 8."""
    import torch

    rewards = torch.tensor([*batch[1], *following[1]])
    return SIZE // 2 * (len(rewards) + int(_mixed(rewards).sum()))


def _mixed(rewards: Any) -> Any:
    """Return which groups have both right and wrong answers among their first half."""
    first = rewards[:, : SIZE // 2]
    return first.amax(dim=1) > first.amin(dim=1)


def seconds_of(choice: str, one: Mapping[str, Any]) -> float:
    """Return the seconds of sampling, in proportion to the answers, and of the update in a round with this choice."""
    return one["sampling"] * one["answers"].get(choice, 1.0) + one["updates"][choice]


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table: each choice's cosine, and its cosine and speed relative to "all 8"."""
    pairs = [(one, number) for one in found for number in range(len(one["cosines"][ALL]))]
    chance = random.Random(1)
    draws = [[chance.choice(pairs) for _ in pairs] for _ in range(RESAMPLES)]
    rows = []
    for choice in CHOICES:
        cosine = float(np.mean([one["cosines"][choice][number] for one, number in pairs]))
        took = float(np.mean([seconds_of(choice, one) for one in found]))
        times = took / float(np.mean([seconds_of(ALL, one) for one in found]))
        ratio = _ratio(choice, pairs)
        low, high = np.quantile([_ratio(choice, drawn) / times for drawn in draws], (0.025, 0.975))
        speed = f"{ratio / times:.2f} [{low:.2f}, {high:.2f}]"
        rows.append([choice, f"{took:.1f}", f"{cosine:.3f}", f"{ratio:.2f}", speed])
    return markdown("trained on | seconds a round | cosine | ÷ all 8 | speed ÷ all 8, 95 %", rows)


def _ratio(choice: str, pairs: Sequence[tuple[Mapping[str, Any], int]]) -> float:
    ours, whole = ([one["cosines"][name][number] for one, number in pairs] for name in (choice, ALL))
    return float(np.mean(ours) / np.mean(whole))


if __name__ == "__main__":
    main()
