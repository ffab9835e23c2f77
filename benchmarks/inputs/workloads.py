"""The workloads on which updates are timed: rollouts of random tokens with given lengths."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from models.rollout import Rollout

if TYPE_CHECKING:
    from models.trainer import Trainer

LENGTHS = Path(__file__).with_name("rollout_lengths.json")  # (prompt, completions) of a starter night's third round
VOCABULARY = range(100, 40_000)  # token ids; the time does not depend on them
SEED = 7
_chance = random.Random(SEED)
Groups = Sequence[tuple[int, list[int]]]  # for each, the tokens of its prompt and of its completions
WORKLOADS: Mapping[str, Groups] = {
    # as in a starter night
    "short": [(55, [min(48, max(4, round(_chance.gauss(25, 10)))) for _ in range(8)]) for _ in range(24)],
    "medium": [(106, [128] * 8)] * 4,
    "ragged": json.loads(LENGTHS.read_text()),
    "long prompt": [(400, [64] * 8)] * 4,
    "long completion": [(106, [512] * 8)] * 2,
}


def rollouts(groups: Groups) -> list[Rollout]:
    """Return rollouts of these lengths. `advantages` gives their advantages."""
    chance = random.Random(SEED)
    found = []
    for group, (prompt, lengths) in enumerate(groups):
        prompt_ids = chance.choices(VOCABULARY, k=prompt)
        for sample, length in enumerate(lengths):
            tokens, zeros = chance.choices(VOCABULARY, k=length), [0.0] * length
            found.append(
                Rollout(f"p{group}", group, sample, prompt_ids, tokens, zeros, [True] * length, "stop", "", "")
            )
    return found


def sampled_by(trainer: "Trainer", rollouts: Sequence[Rollout]) -> list[Rollout]:
    """Return the rollouts with the log-probabilities that a sampler of the trainer's policy would have recorded."""
    logprobs = trainer.logprobs(rollouts)
    return [replace(rollout, sampler_logprobs=values) for rollout, values in zip(rollouts, logprobs, strict=True)]


def advantages(rollouts: Sequence[Rollout]) -> list[float]:
    """Return an advantage for each rollout, as if every second completion were correct."""
    return [0.5 if rollout.sample % 2 else -0.5 for rollout in rollouts]
