"""TRL's GRPOTrainer as a user would run it, including its generation: the seconds of each whole step.

    python -m benchmarks.trl.step '{"student": …, "conversations": […], "size": 8, "max_tokens": 128, …}'

prints them as a JSON list. The weights are in our compute precision, gradient checkpointing is off, and one optimizer
step takes all completions.
"""

import json
import random
import sys
import tempfile
from pathlib import Path

from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from benchmarks.machine.gauge import PRECISION
from benchmarks.trl.update import Stopwatch, settings
from models.hf.loading import load_tokenizer


def seconds_per_step(
    student: str, conversations: list[list[dict[str, str]]], size: int, max_tokens: int, batch: int, steps: int
) -> list[float]:
    """Return the seconds of each step on `size` completions per conversation, with random rewards."""
    chance = random.Random(1)
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as output:
        trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(student, dtype=PRECISION),
            reward_funcs=lambda completions, **_: [chance.random() for _ in completions],
            args=GRPOConfig(**settings(output, len(conversations), size, batch, max_tokens), max_steps=steps),
            train_dataset=Dataset.from_list([{"prompt": rendered(student, messages)} for messages in conversations]),
            processing_class=AutoTokenizer.from_pretrained(student),
            callbacks=[stopwatch],
        )
        trainer.train()
    return stopwatch.seconds


def rendered(student: str, messages: list[dict[str, str]]) -> str:
    """Return a conversation as text for TRL. The starter night's empty system turn gives it the same tokens as ours."""
    conversation = [{"role": "system", "content": ""}, *messages]
    tokenizer = load_tokenizer(Path(student))
    return str(tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False))


def main() -> None:
    """Measure with the arguments that the command line gives as JSON."""
    print(json.dumps(seconds_per_step(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
