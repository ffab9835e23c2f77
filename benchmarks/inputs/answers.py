"""Answers of a student, sampled by vLLM."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.owners import TOKENS
from conf.load import STARTER, load_night
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from tasks.workers import engine_process
from tasks.workers.worker import Worker

Talk = list[dict[str, str]]


def sampled(
    worker: Worker, checkpoint: Path, talks: Sequence[Talk], samples: int, seed: int, temperature: float = 0.8
) -> list[list[Rollout]]:
    """Return `samples` answers to each conversation. `worker` holds the engine. The classroom's temperature is 0.8."""
    config = load_night(STARTER)
    tokenizer = load_tokenizer(checkpoint, config.student.trust_remote_code)
    prompts = [prompt_tokens(tokenizer, talk, config.student) for talk in talks]
    how: Any = {"seed": seed, "temperature": temperature, "max_tokens": TOKENS}
    groups, _ = worker.call(engine_process.sample, checkpoint, config.sampler, prompts, samples, **how)
    return groups
