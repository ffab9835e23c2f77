"""One update of a night's last round under PyTorch's profiler: a trace for a browser, and the slowest operators.

python -m benchmarks.nights.update_trace NIGHT_FOLDER FILE
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from conf.load import load_night
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.tables import ADVANTAGES, read_rollouts, read_table
from tasks.training.update import advantages_by_sample

OPERATORS = 20


def main() -> None:
    """Run the update twice, the second time under the profiler."""
    folder, file = Path(sys.argv[1]), Path(sys.argv[2])
    config = load_night(folder / "config.yaml")
    last = max(folder.glob("round-*/checkpoint/checkpoint.txt")).parent.parent
    rollouts, advantages = round_of(last)
    checkpoint = folder.parents[1] / "checkpoints" / (last / "checkpoint" / "checkpoint.txt").read_text()
    trainer = Trainer.load(checkpoint, config.trainer)
    trainer.update(rollouts, advantages)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    with profile(activities=activities) as profiler:
        metrics = trainer.update(rollouts, advantages)
    profiler.export_chrome_trace(str(file))
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=OPERATORS), file=sys.stderr)
    print(json.dumps(metrics))


def round_of(folder: Path) -> tuple[list[Rollout], list[Any]]:
    """Return a round's rollouts, including refills, and their advantages."""
    rollouts: list[Rollout] = []
    advantages: list[Any] = []
    for part in (folder, *sorted(folder.glob("refill-*"))):
        by_sample = advantages_by_sample(read_table(part / "credit" / "advantages.parquet", ADVANTAGES))
        sampled = read_rollouts(part / "sample" / "rollouts.parquet")
        rollouts += sampled
        advantages += [by_sample[rollout.group, rollout.sample] for rollout in sampled]
    return rollouts, advantages


if __name__ == "__main__":
    main()
