"""What this machine's GPU can do: three stages, within 25 minutes each.

    python -m benchmarks.gpu trainer     # needs torch, transformers, peft, pydantic and jaxtyping, but not vLLM
    python -m benchmarks.gpu engine      # needs vLLM, too
    python -m benchmarks.gpu night       # a short night of conf/nightly.yaml with `--student`

Options: [--only gradients update …] [--student FOLDER] [--minutes 25]. On a GPU, each run adds a line to
docs/gpu.jsonl, with card, versions and commit.

Each part runs in its own process (gpu_parts.py and gpu_engine.py in benchmarks/machine). If a part fails, the table
says why, and the other parts still run. The trainer's model has the shape of Qwen3-0.6B and random weights, unless
`--student` names a folder; the engine's is the starter, and the night's, by default, its own. Without a GPU, the parts
run on the CPU with a tiny model, which shows that they work, but nothing else.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tasks.workers.worker import die_with_parent

SHAPE: dict[str, Any] = {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28}
SHAPE |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936}
TINY: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
TINY |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 40_000}
TRAINER = ("gradients", "update", "capped", "repeated", "tests")
STAGES = {"trainer": TRAINER, "engine": ("engine",), "night": ("night",)}
LINES = Path("docs/gpu.jsonl")


def main() -> None:
    """Run the parts one after the other until the time is used up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES, nargs="?", default="trainer")
    parser.add_argument("--only", nargs="+", help="parts of the stage")
    parser.add_argument("--student", type=Path, help="a folder with a model and its tokenizer")
    parser.add_argument("--minutes", type=float, default=25.0, help="in all; parts that do not fit are skipped")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        module = "gpu_engine" if options.part in ("engine", "night") else "gpu_parts"
        parts = importlib.import_module(f"benchmarks.machine.{module}")
        for name, result in getattr(parts, options.part)(options.student):
            print(json.dumps([name, result]), flush=True)
        return
    until = time.monotonic() + 60 * options.minutes
    figures: dict[str, list[tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        student = options.student or (_random_model(Path(temporary)) if options.stage == "trainer" else None)
        for part in ("versions", *(options.only or STAGES[options.stage])):
            figures[part] = child(part, student, max(1.0, until - time.monotonic()))
            for name, result in figures[part]:
                print(f"{part:10} {name:44} {result}", flush=True)
    if "memory" in dict(figures["versions"]):  # there is a GPU
        with LINES.open("a") as file:
            file.write(json.dumps({"stage": options.stage, **figures}) + "\n")


def child(part: str, student: Path | None, limit: float = 600.0) -> list[tuple[str, str]]:
    """Run a part in a child process, and return its rows. The child is killed if this process ends."""
    from models.engine.environment import engine_environment, trainer_environment

    command = [sys.executable, "-m", "benchmarks.gpu", "--part", part]
    command += ["--student", str(student)] if student else []
    environment = engine_environment() if part == "engine" else trainer_environment()
    parent = os.getpid()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        try:
            done = subprocess.run(
                command,
                stdout=output,
                stderr=errors,
                env=os.environ | environment,
                timeout=limit,
                check=False,
                preexec_fn=lambda: die_with_parent(parent),
            )
            errors.seek(0)
            reason = (errors.read().strip().splitlines() or ["no message"])[-1][:160] if done.returncode else ""
        except subprocess.TimeoutExpired:
            reason = "out of time"
        output.seek(0)
        rows = [tuple(json.loads(line)) for line in output if line.startswith('["')]
    return [*rows, ("failed", reason)] if reason else rows


def _random_model(folder: Path) -> Path:
    """Write a model with random weights and the shape of Qwen3-0.6B, or a tiny shape if there is no GPU."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    shape = SHAPE if torch.cuda.is_available() else TINY
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(Qwen3Config(**shape, tie_word_embeddings=True), dtype=torch.bfloat16)
    model.save_pretrained(folder / "student")
    return folder / "student"


if __name__ == "__main__":
    main()
