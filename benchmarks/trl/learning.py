"""Train on the starter's arithmetic with TRL's GRPOTrainer for a given time, keeping the weights after every step.

    python -m benchmarks.trl.learning '{"student": …, "kept": …, "seed": 1, "seconds": 150, …}'

prints [[seconds, folder], …]. The time starts with the first step and does not include writing the weights. Precision,
learning rate, warm-up and AdamW's betas are the night's. The other settings are TRL's own, such as fp32 weights and
advantages divided by the group's standard deviation.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.machine.gauge import PRECISION
from benchmarks.trl.step import rendered
from benchmarks.trl.update import settings
from models.engine.sync_probe import PROBE_FILE
from rewards.arithmetic import Arithmetic
from rewards.verifier import Attempt, Problem

LEVELS = ("1", "2")
PROBLEMS = 4000  # drawn evenly; more than the time allows


class Clock(TrainerCallback):
    """Keeps the weights and the learning time of every step, and stops the training when the time is over."""

    def __init__(self, student: Path, kept: Path, limit: float) -> None:
        self.student, self.kept, self.limit = student, kept, limit
        self.started, self.paused = 0.0, 0.0
        self.points: list[tuple[float, str]] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock at the first step."""
        self.started = self.started or time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Keep the weights, and stop if the time is over. The time for writing does not count."""
        now = time.perf_counter()
        seconds = now - self.started - self.paused
        folder = self.kept / f"step-{state.global_step:03d}"
        keep(given["model"], self.student, folder)
        self.points.append((seconds, str(folder)))
        control.should_training_stop = seconds >= self.limit
        self.paused += time.perf_counter() - now


def keep(model: torch.nn.Module, student: Path, folder: Path) -> None:
    """Write the weights as a night stores them, and copy all other files from the student's folder."""
    shutil.copytree(student, folder, ignore=shutil.ignore_patterns("*.safetensors", PROBE_FILE))
    shared = model.get_input_embeddings() is not None and getattr(model.config, "tie_word_embeddings", False)  # pyrefly: ignore[not-callable]
    tensors = {
        name: tensor.detach().to("cpu", PRECISION).contiguous()
        for name, tensor in model.state_dict().items()
        if not (shared and name == "lm_head.weight")
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def learn(
    student: str,
    kept: str,
    seed: int,
    seconds: float,
    prompts: int,
    size: int,
    batch: int,
    max_tokens: int,
    rate: float,
) -> list[tuple[float, str]]:
    """Train on `prompts` × `size` completions per step for `seconds`. Return each step's time and folder of weights."""
    benchmark = Arithmetic(levels=LEVELS)
    problems = benchmark.draw(f"learning {seed}", PROBLEMS)
    conversations = [[{"role": "user", "content": benchmark.prompt(problem)}] for problem in problems]
    rows = [
        {"prompt": rendered(student, messages), "truth": problem.truth}
        for messages, problem in zip(conversations, problems, strict=True)
    ]
    clock = Clock(Path(student), Path(kept), seconds)
    with tempfile.TemporaryDirectory() as output:
        config = GRPOConfig(
            **settings(output, prompts, size, batch, max_tokens),
            learning_rate=rate,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=2,
            adam_beta2=0.95,
            max_steps=10_000,
            seed=seed,
        )
        trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(student, dtype=torch.float32),
            reward_funcs=correct,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=AutoTokenizer.from_pretrained(student),
            callbacks=[clock],
        )
        trainer.train()
    return clock.points


def correct(completions: Sequence[str], truth: Sequence[str], **_: Any) -> list[float | None]:
    """Return the rewards of the verifier that a night uses. TRL calls this as its reward function."""
    attempts = [
        Attempt(Problem("", "arithmetic", "", true), text) for text, true in zip(completions, truth, strict=True)
    ]
    return [score.reward for score in Arithmetic().score(attempts)]


def main() -> None:
    """Train with the arguments that the command line gives as JSON."""
    print(json.dumps(learn(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
