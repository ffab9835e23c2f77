"""Episodes of many turns: what they cost beside bare vLLM on the same tokens, and how the cost grows with the turns.

    python -m benchmarks.turns [--turns 8 16 32] [--episodes 32] [--json]

The starter student plays ants. Then vLLM alone generates the same tokens from the same prompts in the same calls, with
its prefix cache kept in the same way: the ratio of the two is what the episodes cost besides the engine. Seconds a
turn that do not grow with the turns mean that an episode costs O(T).
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.starter import starter
from conf.schema import EngineConfig, StudentConfig
from models.engine.environment import engine_environment
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from rewards.environments.ants import Ants
from rewards.environments.episodes import Episodes
from tasks.rollouts.episodes import Episode, Game, Player, play
from tasks.rollouts.turns import spans
from tasks.workers import engine_process
from tasks.workers.worker import Worker

STUDENT = StudentConfig(system="")
MAX_TOKENS = 12
TIER = "2"  # a grid in which an episode may last

Call = tuple[list[list[int]], list[int]]  # prompts, and how many tokens followed each


def main() -> None:
    """Measure each number of turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    checkpoint = starter().resolve()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as logs:
        for turns in options.turns:
            engine = Worker("engine", engine_environment(), Path(logs) / "engine.log")
            try:
                found.append(measured(checkpoint, engine, turns, options.episodes))
            finally:
                engine.close()
    print(json.dumps(found) if options.json else table(found))


def measured(checkpoint: Path, engine: Worker, turns: int, count: int) -> dict[str, Any]:
    """Return the seconds of the episodes and of bare generation, after a first run of both."""
    once(checkpoint, engine, turns, count)
    return once(checkpoint, engine, turns, count)


def once(checkpoint: Path, engine: Worker, turns: int, count: int) -> dict[str, Any]:
    """Play the episodes, then generate as much without them."""
    config = EngineConfig(max_model_len=160 + 60 * turns, max_num_seqs=count, kv_cache_gb=2)
    episodes = begun(checkpoint, turns, count)
    with Game(Episodes(Ants((TIER,), turns), bounded=True)) as opened:
        opened.begin(episodes)
        started = time.perf_counter()
        play(episodes, opened, Player(checkpoint, STUDENT, config, engine, MAX_TOKENS, 1.0), "benchmark", None)
        seconds = time.perf_counter() - started
    rollouts = [episode.rollout() for episode in episodes]
    bare = engine.call(generate, calls_of(rollouts))
    written = sum(rollout.written for rollout in rollouts)
    return {"turns": turns, "episodes": count, "seconds": seconds, "bare": bare, "written": written}


def begun(checkpoint: Path, turns: int, count: int) -> list[Episode]:
    """Return episodes that have not begun."""
    ants, tokenizer = Ants((TIER,), turns), load_tokenizer(checkpoint)
    problems = ants.problems("train")[: count // 4]
    prompts = {
        problem: prompt_tokens(tokenizer, [{"role": "user", "content": ants.reset(problem)[1]}], STUDENT)
        for problem in problems
    }
    return [Episode(problem, group, n, prompts[problem]) for group, problem in enumerate(problems) for n in range(4)]


def calls_of(rollouts: Sequence[Rollout]) -> list[Call]:
    """Return the engine's calls that made these episodes: all prompts of a turn, and the lengths of the answers."""
    by_turn: list[Call] = []
    for rollout in rollouts:
        for turn, (first, length) in enumerate(spans(rollout)):
            if turn == len(by_turn):
                by_turn.append(([], []))
            by_turn[turn][0].append([*rollout.prompt_token_ids, *rollout.token_ids[:first]])
            by_turn[turn][1].append(length)
    return by_turn


def generate(calls: Sequence[Call]) -> float:
    """Return the seconds in which vLLM alone writes as many tokens from the same prompts. Runs in its process."""
    from vllm import SamplingParams

    assert engine_process._sampler is not None
    llm = engine_process._sampler.llm
    llm.reset_prefix_cache()
    started = time.perf_counter()
    for prompts, lengths in calls:
        params = [SamplingParams(max_tokens=n, ignore_eos=True, logprobs=0) for n in lengths]
        requests: Any = [{"prompt_token_ids": prompt} for prompt in prompts]
        llm.generate(requests, params, use_tqdm=False)
    return time.perf_counter() - started


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the measurements in Markdown."""
    lines = [
        "| turns | seconds of the episodes | seconds a turn | bare vLLM, seconds | rows/s beside bare |",
        "|---|---|---|---|---|",
    ]
    for one in found:
        a_turn, beside = one["seconds"] / one["turns"], one["bare"] / one["seconds"]
        lines.append(f"| {one['turns']} | {one['seconds']:.1f} | {a_turn:.2f} | {one['bare']:.1f} | {beside:.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
