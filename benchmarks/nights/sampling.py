"""The sample stage against vLLM's offline `generate`, with the same prompts, parameters and log-probabilities.

    NIGHTSCHOOL_HOME=… python -m benchmarks.nights.sampling [--repeats 3]

samples a round of the home's night again as the stage does (in the engine's process, with the sync check and the
table), while nothing else runs. In between, plain vLLM samples the same round in a process of its own, with the same
settings. Prints one JSON object: tokens per second.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs.options import options
from benchmarks.machine.child import engine
from benchmarks.nights.timed import DATE
from conf.load import load_night
from conf.schema import EngineConfig, NightConfig
from conf.storage.home import Home
from flows import environment
from models.engine.environment import CPU_BLOCK
from models.hf.hardware import GIB

_llm: Any = None  # plain vLLM's, in its process


def main() -> None:
    """Measure our stage before and after plain vLLM, so that a change in the machine's speed affects both."""
    repeats = options(__doc__, {"--repeats": 3}).repeats
    environment.prepare()
    folder = Home.here().night(DATE)
    config = load_night(folder / "config.yaml")
    prompts = folder / "round-02" / "select_prompts"  # in the second round some solve rates are known
    checkpoint = Home.here().checkpoints / (folder / "distill" / "checkpoint.txt").read_text()
    before = ours(config, prompts, checkpoint, repeats)
    offline = plain(config, prompts, checkpoint, repeats)
    tokens, stage, generate = np.sum([*before, *ours(config, prompts, checkpoint, repeats)], axis=0)
    offline_tokens, seconds = np.sum(offline, axis=0)
    print(json.dumps({"stage": tokens / stage, "generate": tokens / generate, "offline": offline_tokens / seconds}))


def ours(config: NightConfig, prompts: Path, checkpoint: Path, repeats: int) -> list[tuple[int, float, float]]:
    """Return each run's tokens, and the seconds of the stage and of the engine. Leaves out the run that starts it."""
    from tasks.rollouts.sample import sample  # Prefect reads the environment when it is imported
    from tasks.rollouts.verified import Player
    from tasks.stage import committed
    from tasks.tables import read_rollouts

    found = []
    with engine() as worker, tempfile.TemporaryDirectory() as work:
        grpo = config.grpo
        limits = grpo.max_completion_tokens, grpo.temperature
        player = Player(checkpoint, config.student, config.sampler, worker, *limits)
        for number in range(repeats + 1):
            started = time.perf_counter()
            inputs = {"prompts": committed(prompts), "player": player, "size": grpo.group_size, "seed": number}
            figures = sample.write(Path(work), **inputs)
            seconds = time.perf_counter() - started
            tokens = sum(len(rollout.token_ids) for rollout in read_rollouts(Path(work) / "rollouts.parquet"))
            found.append((tokens, seconds, (figures or {})["generate"]))
    return found[1:]


def plain(config: NightConfig, prompts: Path, checkpoint: Path, repeats: int) -> list[tuple[int, float]]:
    """Return each run's tokens and seconds for vLLM alone, used as its documentation shows."""
    from tasks.tables import PROMPTS, read_table

    table = read_table(prompts / "prompts.parquet", PROMPTS).prompt_token_ids
    asked, grpo = [list(map(int, tokens)) for tokens in table], config.grpo
    arguments = (checkpoint, config.sampler, asked, grpo.group_size, grpo.max_completion_tokens, grpo.temperature)
    with engine() as worker:
        return [worker.call(offline_generate, *arguments, seed=number) for number in range(repeats + 1)][1:]


def offline_generate(
    checkpoint: Path,
    config: EngineConfig,
    prompts: Sequence[list[int]],
    size: int,
    max_tokens: int,
    temperature: float,
    *,
    seed: int,
) -> tuple[int, float]:
    """Return the tokens and seconds of `LLM.generate` alone. Runs in plain vLLM's process."""
    global _llm
    import torch
    from vllm import LLM, SamplingParams

    from benchmarks.machine.gauge import CUDA, PRECISION

    if _llm is None:
        _llm = LLM(
            model=str(checkpoint),
            dtype="float32" if PRECISION is torch.float32 else "bfloat16",
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            block_size=None if CUDA else CPU_BLOCK,
            enforce_eager=not CUDA,
            kv_cache_memory_bytes=None if CUDA else int(config.kv_cache_gb * GIB),
            gpu_memory_utilization=config.gpu_memory_share,
            generation_config="vllm",
        )
    torch.manual_seed(seed)
    _llm.reset_prefix_cache()
    requests: Any = [{"prompt_token_ids": prompt} for prompt in prompts]
    params = SamplingParams(n=size, temperature=temperature, max_tokens=max_tokens, logprobs=0)
    started = time.perf_counter()
    outputs = _llm.generate(requests, params, use_tqdm=False)
    seconds = time.perf_counter() - started
    return sum(len(completion.token_ids) for output in outputs for completion in output.outputs), seconds


if __name__ == "__main__":
    main()
