"""TRL's GRPOTrainer on given rollouts: its own training loop, with recorded rollouts instead of generation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.machine.gauge import CUDA, PRECISION, now
from models.rollout import Rollout


class Stopwatch(TrainerCallback):
    """Measures the seconds of every optimizer step, including the passes of its microbatches."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.started = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the watch before the first microbatch."""
        self.started = now()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Stop the watch after the optimizer's step."""
        self.seconds.append(now() - self.started)


class RecordedTrainer(GRPOTrainer):
    """A GRPOTrainer whose generation returns recorded rollouts."""

    recorded: dict[str, torch.Tensor]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, torch.Tensor]:
        return dict(self.recorded)


def settings(output: str, prompts: int, size: int, batch: int, max_tokens: int) -> dict[str, Any]:
    """Return the settings of GRPOConfig that all measurements share. Each step has `prompts` × `size` completions."""
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


def seconds_per_update(
    student: Path,
    rollouts: Sequence[Rollout],
    advantages: Sequence[float],
    batch: int,
    checkpointing: bool,
    weights: str,
    steps: int,
    output: Path,
) -> list[float]:
    """Return the seconds of `steps` updates in our precision, each a step with microbatches of `batch` completions."""
    size = sum(rollout.group == 0 for rollout in rollouts)
    longest = max(len(rollout.token_ids) for rollout in rollouts)
    shared = settings(str(output), len(rollouts) // size, size, batch, longest)
    shared["gradient_checkpointing"] = checkpointing
    config = GRPOConfig(**shared, max_steps=steps, learning_rate=1e-5, loss_type="dapo")
    stopwatch = Stopwatch()
    trainer = RecordedTrainer(
        AutoModelForCausalLM.from_pretrained(student, dtype=getattr(torch, weights)),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=config,
        train_dataset=Dataset.from_list([{"prompt": f"{n}"} for n in range(len(rollouts) * (steps + 1))]),
        processing_class=AutoTokenizer.from_pretrained(student),
        callbacks=[stopwatch],
    )
    trainer.recorded = _padded(rollouts, advantages, trainer.accelerator.device)
    trainer.train()
    return stopwatch.seconds


def _padded(rollouts: Sequence[Rollout], advantages: Sequence[float], device: torch.device) -> dict[str, torch.Tensor]:
    """Return tensors as TRL makes them: prompts padded on the left, completions on the right."""
    prompts = [torch.tensor(rollout.prompt_token_ids) for rollout in rollouts]
    completions = [torch.tensor(rollout.token_ids) for rollout in rollouts]
    mask = pad_sequence([torch.ones_like(c) for c in completions], batch_first=True)
    return {
        name: tensor.to(device)
        for name, tensor in {
            "prompt_ids": pad_sequence(prompts, batch_first=True, padding_side="left"),
            "prompt_mask": pad_sequence([torch.ones_like(p) for p in prompts], batch_first=True, padding_side="left"),
            "completion_ids": pad_sequence(completions, batch_first=True),
            "completion_mask": mask,
            "advantages": torch.tensor(list(advantages)),
            "num_items_in_batch": mask.sum(),
        }.items()
    }
