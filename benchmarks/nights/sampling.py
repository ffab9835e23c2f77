"""The sample stage against vLLM's offline `generate`, with the same prompts, parameters and log-probabilities.

    NIGHTSCHOOL_HOME=… python -m benchmarks.nights.sampling [--repeats 3]

samples rounds of the home's night again with the committed stage (through the engine's process, with the sync check and
the table) and nothing else running; in between, plain vLLM does the same in its own process with the same settings.
Prints one JSON object.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.nights.timed import DATE
from conf.load import load_night
from conf.schema import EngineConfig
from conf.storage.home import Home
from flows import environment
from flows.orchestration.server import prefect_api
from models.engine.environment import CPU_BLOCK, engine_environment, kv_cache_bytes
from tasks.workers.worker import Worker

if TYPE_CHECKING:
    from flows.run.context import Night

_llm: Any = None  # in the plain process
Sampled = tuple[int, float]  # tokens, seconds


def main() -> None:
    """Measure ours, plain, ours, so that a change of the machine's speed affects both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    environment.prepare()
    from prefect import flow  # it reads the environment when it is imported

    measured: Any = flow(name="sampling")(compare)
    with prefect_api(Home.here().root, None):
        print(json.dumps(measured(repeats)))


def compare(repeats: int) -> dict[str, float]:
    """Return tokens per second of the whole sample stage, of its call to the engine, and of plain vLLM."""
    from flows.run.context import Night

    home = Home.here()
    night = Night(home, DATE, load_night(home.night(DATE) / "config.yaml"))
    before = ours(night, repeats, "before")
    offline = plain(night, repeats)
    after = ours(night, repeats, "after")
    return {
        "stage": rate([sampled for sampled, _ in before + after]),
        "generate": rate([sampled for _, sampled in before + after]),
        "offline": rate(offline),
    }


def ours(night: "Night", repeats: int, place: str) -> list[tuple[Sampled, Sampled]]:
    """Return tokens with the seconds of the stage and of the engine's call, without the first run, which starts it."""
    from tasks.rollouts.sample import sample
    from tasks.stage import committed
    from tasks.tables import read_rollouts

    config, found = night.config, []
    for number in range(repeats + 1):
        artifact = sample(
            night.folder,
            f"sampled-{place}/{number}",
            prompts=committed(_prompts(night)),
            checkpoint=_checkpoint(night),
            grpo=config.grpo,
            config=config.sampler,
            trust_remote_code=False,
            seed=number,
            engine=night.engine,
        )
        tokens = sum(len(rollout.token_ids) for rollout in read_rollouts(artifact.folder / "rollouts.parquet"))
        found.append(((tokens, artifact.seconds), (tokens, artifact.figure("generate"))))
    night.engine.close()
    return found[1:]


def plain(night: "Night", repeats: int) -> list[Sampled]:
    """Return the same for vLLM alone, used as in its documentation, in the same environment."""
    from tasks.tables import PROMPTS, read_table

    config = night.config
    prompts = read_table(_prompts(night) / "prompts.parquet", PROMPTS).prompt_token_ids
    worker = Worker("plain", engine_environment(), night.folder / "logs" / "plain.log")
    arguments = (
        _checkpoint(night),
        config.sampler,
        [list(map(int, tokens)) for tokens in prompts],
        config.grpo.group_size,
        config.grpo.max_completion_tokens,
    )
    found = [worker.call(offline_generate, *arguments, seed=number) for number in range(repeats + 1)]
    worker.close()
    return found[1:]


def offline_generate(
    checkpoint: Path, config: EngineConfig, prompts: Sequence[list[int]], size: int, max_tokens: int, *, seed: int
) -> Sampled:
    """Time `LLM.generate` alone. Runs in the plain process."""
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
            kv_cache_memory_bytes=None if CUDA else kv_cache_bytes(config.kv_cache_gb),
            gpu_memory_utilization=config.gpu_memory_share,
            generation_config="vllm",
        )
    torch.manual_seed(seed)
    _llm.reset_prefix_cache()
    requests: Any = [{"prompt_token_ids": prompt} for prompt in prompts]
    params = SamplingParams(n=size, temperature=1.0, max_tokens=max_tokens, logprobs=0)
    started = time.perf_counter()
    outputs = _llm.generate(requests, params, use_tqdm=False)
    seconds = time.perf_counter() - started
    return sum(len(completion.token_ids) for output in outputs for completion in output.outputs), seconds


def rate(sampled: Sequence[Sampled]) -> float:
    """Return tokens per second."""
    return sum(tokens for tokens, _ in sampled) / sum(seconds for _, seconds in sampled)


def _prompts(night: "Night") -> Path:
    """Return the folder of a round's prompts; in the second round some solve rates are known."""
    return night.folder / "round-02" / "select_prompts"


def _checkpoint(night: "Night") -> Path:
    return night.home.checkpoints / (night.folder / "distill" / "checkpoint.txt").read_text()


if __name__ == "__main__":
    main()
