"""Rehearsal: lessons also train on the student's own answers to everyday prompts, so that the student forgets less.

Answers sampled at temperature 1 follow the student's own distribution, so training on them preserves it (Robins 1995,
"Catastrophic forgetting, rehearsal and pseudorehearsal"). Greedy answers would teach the student to repeat itself.
"""

from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from tasks.rollouts.verified import sample_verified
from tasks.stage import stage
from tasks.tables import write_rollouts
from tasks.workers import engine_process
from tasks.workers.worker import Worker

PROMPTS = Path(__file__).with_name("everyday_prompts.txt")  # one prompt per line, written for this project


@stage(retries=2, resources=("engine",))
def rehearsal(
    folder: Path,
    *,
    count: int,
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    seed: int,
    engine: Worker,
) -> None:
    """Write `count` answers, spread evenly over the prompts, then put the engine to sleep.

    Truncated answers are kept, but have no end token.
    """
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    asked = PROMPTS.read_text(encoding="utf-8").splitlines()
    prompts = [prompt_tokens(tokenizer, [{"role": "user", "content": prompt}], student) for prompt in asked]
    each = -(-count // len(prompts))
    options: dict[str, Any] = {"max_tokens": max_completion_tokens, "trust_remote_code": student.trust_remote_code}
    groups, _ = sample_verified(engine, checkpoint, config, prompts, each, seed=seed, temperature=1.0, **options)
    answers = [group[sample] for sample in range(each) for group in groups]
    write_rollouts(folder / "rollouts.parquet", answers[:count])
    engine.call(engine_process.sleep)
