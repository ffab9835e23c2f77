"""Play a round's groups of episodes, a few turns per committed stage."""

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from conf.schema import BenchmarkConfig
from conf.storage.layout import TURNS_OF_A_PART
from models.transcript import Transcript
from rewards.data.benchmarks import configured
from rewards.verifier import Problem
from tasks.rollouts.episodes import Episode, Game, play
from tasks.rollouts.select_prompts import problem_of
from tasks.rollouts.verified import Player
from tasks.stage import Artifact, stage
from tasks.tables import PROMPTS, Row, table_rows, write_rollouts

EPISODES = "episodes.json"


@stage(retries=2)
def play_turns(
    folder: Path,
    *,
    prompts: Artifact,
    before: Artifact | None,
    sources: tuple[BenchmarkConfig, ...],
    player: Player,
    size: int,
    seed: str,
) -> Mapping[str, float]:
    """Play the next few turns of a round's episodes. Each prompt has `size` episodes.

    `before`: the preceding `play_turns` stage, or None for the first turns. The engine's caches are reset before each
    stage, so an episode that resumes after the night was killed is bit-identical to an uninterrupted one. Returns the
    number of unfinished episodes (`live`) and the seconds spent playing (`generate`).
    """
    rows = table_rows(prompts.folder / "prompts.parquet", PROMPTS)
    entry_of = {row["group"]: row["entry"] for row in rows}
    episodes = _first(rows, size) if before is None else read_episodes(before)
    started = time.perf_counter()
    for number, source in enumerate(sources):
        with Game(configured(source)) as opened:
            own = [episode for episode in episodes if entry_of[episode.group] == number]
            if before is None:
                opened.begin(own)
            play(own, opened, player, f"{seed} {number}", TURNS_OF_A_PART)
    (folder / EPISODES).write_text(json.dumps([dataclasses.asdict(episode) for episode in episodes]))
    live = sum(not episode.finish for episode in episodes)
    return {"live": live, "generate": time.perf_counter() - started}


@stage()
def collect(folder: Path, *, parts: tuple[Artifact, ...]) -> Mapping[str, float]:
    """Write each finished episode as one rollout. Returns the total seconds of all `play_turns` stages in `parts`."""
    write_rollouts(folder / "rollouts.parquet", [episode.rollout() for episode in read_episodes(parts[-1])])
    generate = sum(part.figure("generate") or 0.0 for part in parts)
    return {"generate": generate, "seconds": sum(part.seconds for part in parts)}


def read_episodes(part: Artifact) -> list[Episode]:
    """Return the episodes that a `play_turns` stage saved."""
    rows = part.read_json(EPISODES)
    return [
        Episode(
            **row
            | {"problem": Problem(**row["problem"])}
            | {"transcripts": [Transcript(**one) for one in row["transcripts"]]}
        )
        for row in rows
    ]


def _first(rows: Sequence[Row], size: int) -> list[Episode]:
    return [
        Episode(problem_of(row), row["group"], sample, [Transcript(row["prompt_token_ids"])])
        for row in rows
        for sample in range(size)
    ]
