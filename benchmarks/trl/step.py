"""TRL's GRPOTrainer as a user would run it here, its own generation included: the seconds of each whole step.

    python -m benchmarks.trl.step '{"student": …, "conversations": […], "size": 8, "max_tokens": 128, …}'

prints them as a JSON list. Weights in the precision that ours computes in, gradient checkpointing off; one optimizer
step on all completions.
"""

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from benchmarks.machine.gauge import CUDA, PRECISION
from benchmarks.trl.update import Stopwatch
from models.hf.loading import load_tokenizer


def settings(output: str, prompts: int, size: int, batch: int, max_tokens: int) -> dict[str, Any]:
    """What of GRPOConfig is the same wherever TRL is run here: steps on `prompts` × `size` completions."""
    return {
        "output_dir": output,
        "per_device_train_batch_size": batch,
        "gradient_accumulation_steps": prompts * size // batch,
        "num_generations": size,
        "max_completion_length": max_tokens,
        "gradient_checkpointing": False,
        "bf16": PRECISION is torch.bfloat16,
        "use_cpu": not CUDA,
        "beta": 0.0,
        "report_to": [],
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
    }


def seconds_per_step(
    student: str, conversations: list[list[dict[str, str]]], size: int, max_tokens: int, batch: int, steps: int
) -> list[float]:
    """Seconds of each of `steps` steps on all conversations, `size` completions each; rewards are drawn."""
    chance = random.Random(1)
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as output:
        trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(student, dtype=PRECISION),
            reward_funcs=lambda completions, **_: [chance.random() for _ in completions],
            args=GRPOConfig(**settings(output, len(conversations), size, batch, max_tokens), max_steps=steps),
            train_dataset=Dataset.from_list([{"prompt": rendered(student, own)} for own in conversations]),
            processing_class=AutoTokenizer.from_pretrained(student),
            callbacks=[stopwatch],
        )
        trainer.train()
    return stopwatch.seconds


def rendered(student: str, messages: list[dict[str, str]]) -> str:
    """A conversation as the text that TRL tokenizes, with the starter night's empty system turn: the same tokens."""
    conversation = [{"role": "system", "content": ""}, *messages]
    tokenizer = load_tokenizer(Path(student))
    return str(tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False))


def main() -> None:
    """Measures what the argument says."""
    print(json.dumps(seconds_per_step(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
