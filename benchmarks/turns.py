"""Episodes of many turns: what they cost compared with bare vLLM, and how the cost grows with the turns.

    python -m benchmarks.turns [--turns 8 16 32] [--episodes 32] [--json]

The starter student plays ants. Then vLLM alone generates as many tokens from the same prompts in the same calls, with
the same use of its prefix cache. The ratio shows what episodes cost besides the engine. If the seconds per turn don't
grow with the number of turns T, an episode costs O(T).
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.starter import starter
from benchmarks.machine.child import engine
from benchmarks.outputs.page import markdown
from conf.schema import EngineConfig, StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from models.transcript import Transcript
from rewards.environments.ants import Ants
from rewards.environments.episodes import Episodes
from tasks.rollouts.episodes import Episode, Game, Player, play
from tasks.rollouts.turns import spans
from tasks.workers import engine_process
from tasks.workers.worker import Worker

STUDENT = StudentConfig(system="")
MAX_TOKENS, GROUP = 12, 4
TIER = "2"  # a grid large enough for long episodes

Call = tuple[list[list[int]], list[int]]  # prompts, and how many tokens followed each


def main() -> None:
    """Measure each number of turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    checkpoint, found = starter().resolve(), []
    for turns in options.turns:
        with engine() as worker:
            once(checkpoint, worker, turns, options.episodes)  # not counted: it starts the engine
            found.append(once(checkpoint, worker, turns, options.episodes))
    print(json.dumps(found) if options.json else table(found))


def once(checkpoint: Path, worker: Worker, turns: int, count: int) -> dict[str, Any]:
    """Play the episodes, then have vLLM alone generate as many tokens. Return the seconds of both."""
    config = EngineConfig(max_model_len=160 + 60 * turns, max_num_seqs=count, kv_cache_gb=2)
    ants = Ants((TIER,), turns)
    episodes = begun(ants, checkpoint, STUDENT, count // GROUP, GROUP)
    with Game(Episodes(ants, bounded=True)) as opened:
        opened.begin(episodes)
        started = time.perf_counter()
        play(episodes, opened, Player(checkpoint, STUDENT, config, worker, MAX_TOKENS, 1.0), "benchmark", None)
        seconds = time.perf_counter() - started
    rollouts = [episode.rollout() for episode in episodes]
    bare = worker.call(generate, calls_of(rollouts))
    written = sum(rollout.written for rollout in rollouts)
    return {"turns": turns, "episodes": count, "seconds": seconds, "bare": bare, "written": written}


def begun(ants: Ants, checkpoint: Path, student: StudentConfig, groups: int, size: int) -> list[Episode]:
    """Return `groups` groups of `size` episodes that have not begun."""
    tokenizer = load_tokenizer(checkpoint)
    episodes: list[Episode] = []
    for group, problem in enumerate(ants.problems("train")[:groups]):
        prompt = prompt_tokens(tokenizer, [{"role": "user", "content": ants.reset(problem)[1]}], student)
        episodes += [Episode(problem, group, sample, [Transcript(prompt)]) for sample in range(size)]
    return episodes


def calls_of(rollouts: Sequence[Rollout]) -> list[Call]:
    """Return the engine's calls in these episodes, one per turn: its prompts, and the lengths of the answers."""
    by_turn: list[Call] = []
    for rollout in rollouts:
        for turn, (first, length) in enumerate(spans(rollout)):
            if turn == len(by_turn):
                by_turn.append(([], []))
            by_turn[turn][0].append([*rollout.prompt_token_ids, *rollout.token_ids[:first]])
            by_turn[turn][1].append(length)
    return by_turn


def generate(calls: Sequence[Call]) -> float:
    """Return the seconds in which vLLM alone writes as many tokens in the same calls. Runs in the engine's process."""
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
    rows = []
    for one in found:
        a_turn, beside = one["seconds"] / one["turns"], one["bare"] / one["seconds"]
        rows.append([one["turns"], f"{one['seconds']:.1f}", f"{a_turn:.2f}", f"{one['bare']:.1f}", f"{beside:.3f}"])
    return markdown("turns | seconds of the episodes | seconds a turn | bare vLLM, seconds | speed beside bare", rows)


if __name__ == "__main__":
    main()
