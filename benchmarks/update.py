"""The update alone: ours, TRL's GRPOTrainer and the arithmetic floor, one after the other on the same rollouts.

    python -m benchmarks.update [--json] [--workloads short medium …] [--steps 3] [--no-night]

Each measurement is a process of its own (peak memory is the process's), ours and TRL's under the same environment. TRL
computes in our precision (models/hf/hardware.py) on fp32 weights, as it loads them by default and as ours are kept,
with gradient checkpointing on and off and with several batch sizes; its fastest setting counts. What it takes with
weights and moments in bf16, which round most of such small steps away, is told beside it (`bf16_weights`). The floor is
the time of the matrix products that an update cannot do without, measured in this run; floor ÷ time is the utilisation
of the device's own rate of such products. On a GPU peak memory is the device's. At the end the figures of
`benchmarks.night`, unless --no-night.
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
from benchmarks.inputs.workloads import advantages, grown, workload
from benchmarks.machine.child import json_of
from benchmarks.machine.gauge import now, peak_gb
from models.engine.environment import trainer_environment
from models.rollout import Rollout

WORKLOADS = ("short", "medium", "ragged", "long prompt", "long completion")
GROWTH = (1, 2, 4, 8)  # groups of 8 completions, times 4
TRL_TOKENS = 8192  # in a batch, padding included; twice as many take more than 20 GB


def main() -> None:
    """Runs every measurement and prints a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=3, help="updates a measurement, the first not counted")
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
        figures["workloads"][name] = compare(name, options)
        print(name, json.dumps(figures["workloads"][name]), file=sys.stderr)
    figures |= growth(options)
    if not options.no_night:
        from benchmarks.night import night_figures

        figures |= night_figures(options.student)
    print(json.dumps(figures) if options.json else table(figures))


def compare(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One workload: ours before and after TRL's settings, so that a change in the machine's pace is seen."""
    settings = trl_settings(workload(name))
    first = in_child({"method": "ours", "workload": name}, options)
    tried = [in_child({"method": "trl", "workload": name} | setting, options) for setting in settings]
    second = in_child({"method": "ours", "workload": name}, options)
    floor = in_child({"method": "floor", "workload": name}, options)
    trl, rounding = (fastest(tried, weights) for weights in ("float32", "bfloat16"))
    seconds = statistics.mean([first["seconds"], second["seconds"]])
    peak = max(first["peak_gb"], second["peak_gb"])
    return {
        "time_ratio": seconds / trl["seconds"],
        "memory_ratio": peak / trl["peak_gb"],
        "floor_ratio": seconds / floor["seconds"],
        "seconds": seconds,
        "peak_gb": peak,
        "seconds_first_and_last": [first["seconds"], second["seconds"]],
        "trl_seconds": trl["seconds"],
        "trl_peak_gb": trl["peak_gb"],
        "bf16_weights": {"time_ratio": seconds / rounding["seconds"], "memory_ratio": peak / rounding["peak_gb"]},
        "trl_tried": tried,
        "floor_seconds": floor["seconds"],
    }


def fastest(tried: Sequence[dict[str, Any]], weights: str) -> dict[str, Any]:
    """The fastest measurement of TRL with weights of this precision."""
    return min((found for found in tried if found["setting"]["weights"] == weights), key=lambda found: found["seconds"])


def trl_settings(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
    """Batches of 8 and, where that is not too much for a small machine, of 32 completions; see the top of the file."""
    longest = max(len(r.prompt_token_ids) + len(r.token_ids) for r in rollouts)
    sizes = [size for size in (8, 32) if len(rollouts) % size == 0 and size * longest <= TRL_TOKENS]
    plain = [{"batch": size, "checkpointing": False, "weights": "float32"} for size in sizes]
    return [
        *plain,
        {"batch": sizes[-1], "checkpointing": True, "weights": "float32"},
        {"batch": sizes[0], "checkpointing": False, "weights": "bfloat16"},
    ]


def growth(options: argparse.Namespace) -> dict[str, Any]:
    """Time and memory against the number of completions: the slopes of their logarithms, by least squares."""
    found = [in_child({"method": "ours", "groups": groups}, options) for groups in GROWTH]
    return {
        "growth_exponent": _slope(GROWTH, [entry["seconds"] for entry in found]),
        "memory_growth_exponent": _slope(GROWTH, [entry["peak_gb"] for entry in found]),
    }


def in_child(what: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Measure in a child process."""
    # TRL is slow: one update of each setting after the one that is not counted
    steps = "2" if what["method"] == "trl" else str(options.steps)
    arguments = ["--measure", json.dumps(what), "--student", str(options.student), "--steps", steps]
    return json_of("benchmarks.update", *arguments, environment=trainer_environment())


def measure(what: dict[str, Any], student: Path, steps: int) -> dict[str, Any]:
    """In the child: the median of the updates after the first, and the process's peak resident memory."""
    rollouts = grown(what["groups"]) if "groups" in what else workload(what["workload"])
    setting = {key: what[key] for key in ("batch", "checkpointing", "weights") if key in what}
    match what["method"]:
        case "ours":
            seconds = ours(student, rollouts, steps)
        case "trl":
            from benchmarks.trl.update import seconds_per_update

            with tempfile.TemporaryDirectory() as output:
                seconds = seconds_per_update(
                    student, rollouts, advantages(rollouts), **setting, steps=steps, output=Path(output)
                )
        case _:
            from benchmarks.machine.floor import seconds_of_matrix_products

            seconds = seconds_of_matrix_products(student, rollouts, steps)
    return {"seconds": statistics.median(seconds[1:]), "peak_gb": peak_gb(), "setting": setting}


def ours(student: Path, rollouts: Sequence[Rollout], steps: int) -> list[float]:
    """Seconds of each update, optimizer step included."""
    import dataclasses

    from conf.schema import TrainerConfig
    from models.trainer import Trainer

    trainer = Trainer.load(student, TrainerConfig())
    own = trainer.logprobs(rollouts)  # as a sampler of the same policy would have recorded them
    rollouts = [dataclasses.replace(r, sampler_logprobs=values) for r, values in zip(rollouts, own, strict=True)]
    seconds = []
    for _ in range(steps):
        started = now()
        trainer.update(rollouts, advantages(list(rollouts)))
        seconds.append(now() - started)
    return seconds


def table(figures: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'workload':16}{'ours s':>9}{'TRL s':>9}{'ratio':>8}{'floor':>8}{'GB':>7}{'TRL GB':>8}{'ratio':>8}"]
    lines[0] += "   (TRL with bf16 weights: time, memory)"
    for name, row in figures["workloads"].items():
        lines.append(
            f"{name:16}{row['seconds']:9.2f}{row['trl_seconds']:9.2f}{row['time_ratio']:8.2f}{row['floor_ratio']:8.2f}"
            f"{row['peak_gb']:7.2f}{row['trl_peak_gb']:8.2f}{row['memory_ratio']:8.2f}"
            f"   ({row['bf16_weights']['time_ratio']:.2f}, {row['bf16_weights']['memory_ratio']:.2f})"
        )
    others = [f"{name:24}{value:8.3f}" for name, value in figures.items() if name != "workloads"]
    return "\n".join([*lines, "", *others])


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    logs = [(math.log(a), math.log(b)) for a, b in zip(x, y, strict=True)]
    middle = [statistics.mean(column) for column in zip(*logs, strict=True)]
    above = sum((a - middle[0]) * (b - middle[1]) for a, b in logs)
    return above / sum((a - middle[0]) ** 2 for a, _ in logs)


if __name__ == "__main__":
    main()
