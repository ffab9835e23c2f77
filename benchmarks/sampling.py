"""What shards of prompts and further machines cost: one round's sampling, divided in several ways.

    python -m benchmarks.sampling [--shards 24 12 6] [--nodes 0 1 2] [--prompts 24] [--samples 16] [--json]

The starter student answers arithmetic problems: first on this machine alone, with shards of several sizes
(`engine.shard_prompts`); then with shards of the last size and a growing number of Ray nodes. The nodes share this
machine's cores, so they show the overhead, not the gain. A digest shows whether all ways give the same completions.
Each way's first run is not counted. Prints sampled tokens per second, as medians over the repeats.
"""

import argparse
import hashlib
import json
import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.inputs.starter import starter
from benchmarks.machine.child import engine
from benchmarks.outputs.page import markdown
from conf.schema import EngineConfig, StudentConfig
from models.engine.environment import engine_environment
from models.hf.checkpoint import digest_folder
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.arithmetic import Arithmetic
from tasks.rollouts.verified import Player, sample_verified
from tasks.workers.worker import Worker

MAX_TOKENS = 48


def main() -> None:
    """Measure each way of dividing a round's sampling, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, nargs="+", default=[24, 12, 6])
    parser.add_argument("--nodes", type=int, nargs="*", default=[])
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    student = starter().resolve()
    prompts = asked(student, options.prompts)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder, digest_folder(student))
        checkpoint.symlink_to(student, target_is_directory=True)
        with engine() as alone:
            ways = {f"{shard} prompts at a time": (alone, shard) for shard in options.shards}
            found = measured(ways, checkpoint, prompts, options.samples, options.repeats)
        for count in options.nodes:
            with cluster(count, Path(folder)) as shared:
                name = f"{options.shards[-1]} at a time, {count} nodes beside this machine"
                ways = {name: (shared, options.shards[-1])}
                found += measured(ways, checkpoint, prompts, options.samples, options.repeats)
    print(json.dumps(found) if options.json else table(found))


def asked(student: Path, count: int) -> list[list[int]]:
    """Return `count` arithmetic prompts as token ids."""
    benchmark, tokenizer, settings = Arithmetic(("1", "2")), load_tokenizer(student), StudentConfig(system="")
    turns = [{"role": "user", "content": benchmark.prompt(problem)} for problem in benchmark.draw("sampling", count)]
    return [prompt_tokens(tokenizer, [turn], settings) for turn in turns]


def measured(
    ways: dict[str, tuple[Worker, int]], checkpoint: Path, prompts: Sequence[list[int]], samples: int, repeats: int
) -> list[dict[str, Any]]:
    """Return, for each way, its tokens per second in each repeat and a digest of its completions."""
    seen: dict[str, list[float]] = {name: [] for name in ways}
    digests: dict[str, str] = {}
    for repeat in range(repeats + 1):
        for name, (worker, shard) in ways.items():
            config = EngineConfig(max_model_len=256, kv_cache_gb=1, shard_prompts=shard)
            began = time.perf_counter()
            player = Player(checkpoint, StudentConfig(), config, worker, MAX_TOKENS, temperature=1.0)
            groups, _ = sample_verified(player, prompts, samples, seed=1)
            seconds = time.perf_counter() - began
            rollouts = [rollout for group in groups for rollout in group]
            texts = json.dumps([rollout.text for rollout in rollouts])
            digests[name] = hashlib.sha256(texts.encode()).hexdigest()[:8]
            if repeat:
                seen[name].append(sum(len(rollout.token_ids) for rollout in rollouts) / seconds)
    return [{"way": name, "tokens_a_second": seen[name], "digest": digests[name]} for name in ways]


@contextmanager
def cluster(nodes: int, folder: Path) -> Iterator[Worker]:
    """Start a Ray cluster of `nodes` local nodes, each of which offers an engine. Yields an engine that uses them."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray
    from ray.cluster_utils import Cluster as LocalCluster

    from tasks.workers.cluster import Cluster

    local = LocalCluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for number in range(nodes):
        local.add_node(num_cpus=0, resources={"engine": 1}, node_name=f"node-{number}", include_dashboard=False)
    shared = Cluster(str(local.address), folder, "engine", engine_environment(), folder / "engine.log")
    try:
        yield shared
    finally:
        shared.end()
        ray.shutdown()
        local.shutdown()


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table of the ways, each compared with the first."""
    medians = [statistics.median(way["tokens_a_second"]) for way in found]
    rows = [
        [way["way"], f"{median:.0f}", f"{median / medians[0]:.2f}", way["digest"]]
        for way, median in zip(found, medians, strict=True)
    ]
    return markdown("sampled | tokens a second | beside the first | completions", rows)


if __name__ == "__main__":
    main()
