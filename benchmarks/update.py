"""The update alone: ours and TRL's GRPOTrainer on the same rollouts.

    python -m benchmarks.update [--json] [--workloads short medium …] [--steps 3] [--no-night]

Each measurement runs in its own process, ours and TRL's in the same environment. Peak memory is that of the process, or
on a GPU that of the device. TRL computes in our precision (models/hf/hardware.py) on fp32 weights (its default and
ours), with and without gradient checkpointing and with several batch sizes; its fastest setting counts. TRL with bf16
weights and moments, which round most of such small steps away, is reported separately (`bf16_weights`). The figures of
`benchmarks.night` come last, unless --no-night is given.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.starter import STARTER, starter
from benchmarks.inputs.workloads import WORKLOADS, Groups, advantages, rollouts, sampled_by
from benchmarks.machine.child import json_of
from benchmarks.machine.gauge import now, peak_gb
from benchmarks.outputs.page import joined, markdown
from models.engine.environment import trainer_environment
from models.rollout import Rollout

GROWTH = (1, 2, 4, 8)  # times 4 groups of 8 completions of 64 tokens
COLUMNS = "workload | seconds | TRL | ratio | peak GB | TRL | ratio | to TRL with bf16 weights: time, memory"
TRL_TOKENS = 8192  # in a batch, including padding; twice as many take more than 20 GB


def main() -> None:
    """Run every measurement and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--workloads", nargs="+", default=[*WORKLOADS], choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=3, help="updates per measurement; the first is not counted")
    parser.add_argument("--student", type=Path, default=STARTER)
    parser.add_argument("--no-night", action="store_true", help="the updates only")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(json.loads(options.measure), options.student, options.steps)))
        return
    starter(options.student)
    figures: dict[str, Any] = {"workloads": {}}
    for name in options.workloads:
        figures["workloads"][name] = compare(name, options.student, options.steps)
        print(name, json.dumps(figures["workloads"][name]), file=sys.stderr)
    if figures["workloads"]:
        figures |= growth(options.student, options.steps)
    if not options.no_night:
        from benchmarks import night

        found = night.measure(options.student, rounds=7)
        figures |= {name: found[name] for name in night.FIGURES}
    print(json.dumps(figures) if options.json else table(figures))


def compare(name: str, student: Path, steps: int) -> dict[str, Any]:
    """Measure a workload: our update before and after TRL's, so that a change in the machine's speed shows."""
    groups = WORKLOADS[name]
    # TRL is slow: each of its settings gets one update after the one that is not counted
    first = in_child({"method": "ours", "groups": groups}, student, steps)
    tried = [in_child({"method": "trl", "groups": groups} | setting, student, 2) for setting in trl_settings(groups)]
    second = in_child({"method": "ours", "groups": groups}, student, steps)
    trl, rounding = (
        min((one for one in tried if one["setting"]["weights"] == weights), key=lambda one: one["seconds"])
        for weights in ("float32", "bfloat16")
    )
    seconds = statistics.mean([first["seconds"], second["seconds"]])
    peak = max(first["peak_gb"], second["peak_gb"])
    return {
        "time_ratio": seconds / trl["seconds"],
        "memory_ratio": peak / trl["peak_gb"],
        "seconds": seconds,
        "peak_gb": peak,
        "seconds_first_and_last": [first["seconds"], second["seconds"]],
        "trl_seconds": trl["seconds"],
        "trl_peak_gb": trl["peak_gb"],
        "bf16_weights": {"time_ratio": seconds / rounding["seconds"], "memory_ratio": peak / rounding["peak_gb"]},
        "trl_tried": tried,
    }


def trl_settings(groups: Groups) -> list[dict[str, Any]]:
    """Return TRL's settings: batches of 8 completions and, if memory allows, of 32."""
    longest = max(prompt + max(lengths) for prompt, lengths in groups)
    completions = sum(len(lengths) for _, lengths in groups)
    sizes = [size for size in (8, 32) if completions % size == 0 and size * longest <= TRL_TOKENS]
    plain = [{"batch": size, "checkpointing": False, "weights": "float32"} for size in sizes]
    return [
        *plain,
        {"batch": sizes[-1], "checkpointing": True, "weights": "float32"},
        {"batch": sizes[0], "checkpointing": False, "weights": "bfloat16"},
    ]


def growth(student: Path, steps: int) -> dict[str, Any]:
    """Return the growth exponents of time and memory in the number of completions (least squares on logarithms)."""
    measured = [
        in_child({"method": "ours", "groups": [(64, [64] * 8)] * 4 * times}, student, steps) for times in GROWTH
    ]
    exponents = {"growth_exponent": "seconds", "memory_growth_exponent": "peak_gb"}
    sizes = [math.log(times) for times in GROWTH]
    return {
        name: statistics.linear_regression(sizes, [math.log(one[figure]) for one in measured]).slope
        for name, figure in exponents.items()
    }


def in_child(what: dict[str, Any], student: Path, steps: int) -> dict[str, Any]:
    """Run `measure` in a child process."""
    arguments = ["--measure", json.dumps(what), "--student", str(student), "--steps", str(steps)]
    return json_of("benchmarks.update", *arguments, environment=trainer_environment())


def measure(what: dict[str, Any], student: Path, steps: int) -> dict[str, Any]:
    """Return the median seconds of the updates after the first, and the peak memory. Runs in the child."""
    sampled = rollouts(what["groups"])
    setting = {key: what[key] for key in ("batch", "checkpointing", "weights") if key in what}
    if what["method"] == "ours":
        seconds = ours(student, sampled, steps)
    else:
        from benchmarks.trl.update import seconds_per_update

        with tempfile.TemporaryDirectory() as output:
            own = advantages(sampled)
            seconds = seconds_per_update(student, sampled, own, **setting, steps=steps, output=Path(output))
    return {"seconds": statistics.median(seconds[1:]), "peak_gb": peak_gb(), "setting": setting}


def ours(student: Path, unsampled: Sequence[Rollout], steps: int) -> list[float]:
    """Return the seconds of each of our updates, including the optimizer step."""
    from conf.schema import GrpoConfig, TrainerConfig
    from models.trainer import Trainer

    trainer, seconds = Trainer.load(student, TrainerConfig(grpo=GrpoConfig(min_useful_groups=1))), []
    sampled = sampled_by(trainer, unsampled)
    for _ in range(steps):
        started = now()
        trainer.update(sampled, advantages(sampled))
        seconds.append(now() - started)
    return seconds


def table(figures: dict[str, Any]) -> str:
    """Return the figures as a table."""
    rows = []
    for name, found in figures["workloads"].items():
        keys = ("seconds", "trl_seconds", "time_ratio", "peak_gb", "trl_peak_gb", "memory_ratio")
        rounding = joined(found["bf16_weights"].values(), ".2f")
        rows.append([name, *(f"{found[key]:.2f}" for key in keys), rounding])
    others = [f"{name:24}{value:8.3f}" for name, value in figures.items() if name != "workloads"]
    return "\n".join([markdown(COLUMNS, rows), "", *others])


if __name__ == "__main__":
    main()
