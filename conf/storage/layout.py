"""Paths of stages and rounds within a night's folder."""

import re
from pathlib import Path
from typing import Any

from conf.storage.durable import read_json

QUIZ = "quiz"  # the folder of the quizzes before and after lessons and rounds
DIVISION = "division.json"  # in a night's folder: how the night's time is divided
PACE_FOLDER = "pace"  # in a night's folder: the steps of each lesson, and each round's share of the learning rate
MANIFEST = "manifest.json"  # in a stage's folder: its presence means that the stage is committed
TURNS_OF_A_PART = 8  # turns of episodes per stage: a kill loses no more than these
NUMBERED = re.compile(r"(rounds?|refill|look)-(\d+)")
ROUND = re.compile(r"round-\d+")


def run_name(path: str) -> str:
    """Return a stage's path in readable form: `round 3 · refill 1 · sample` for `round-03/refill-1/sample`."""
    return " · ".join(
        f"{numbered[1]} {int(numbered[2])}" if (numbered := NUMBERED.fullmatch(part)) else part.replace("_", " ")
        for part in path.split("/")
    )


def round_path(number: int) -> str:
    """Return the path of a round in the night's folder: `round-03`."""
    return f"round-{number:02d}"


def is_round(path: str) -> bool:
    """Return whether `path` is the path of a round."""
    return ROUND.fullmatch(path) is not None


def ranking_path(first: int, number: int) -> str:
    """Return the path of the ranking of held-out picks after round `number` of the block whose first round is `first`.

    If `number` is below `first`, return the path of the ranking before that block (`rank_picks`, `rank_picks-9`).
    """
    if number >= first:
        return f"{round_path(number)}/rank_picks"
    return f"rank_picks-{first}" if first > 1 else "rank_picks"


def rounds(night: Path) -> list[tuple[int, Path]]:
    """Return the number and folder of each round, in order."""
    return sorted((int(folder.name.removeprefix("round-")), folder) for folder in night.glob("round-*"))


def is_committed(folder: Path) -> bool:
    """Return whether a round's updated checkpoint is committed."""
    return (folder / "checkpoint" / MANIFEST).exists()


def committed_rounds(night: Path) -> list[Path]:
    """Return the folders of the rounds whose updated checkpoints are committed, in order."""
    return [folder for _, folder in rounds(night) if is_committed(folder)]


def passes(folder: Path) -> list[Path]:
    """Return a round's folder and the folders of its refills, each with prompts, rollouts and scores."""
    return [folder, *sorted(folder.glob("refill-*"))]


def quiz_of_block(merge: str) -> str:
    """Return the name of the quiz after a block of rounds, given the path of its merge: `rounds-2` for `merge-2`."""
    return merge.replace("merge", "rounds")


def check_path(lesson: str) -> str:
    """Return the path of the stage that checks whether a lesson made the student worse."""
    return f"{lesson}_check"


def committed_json(folder: Path, name: str) -> Any:
    """Return a stage's parsed JSON file, or None if it is missing or the stage is uncommitted. Verifies no digests."""
    return read_json(folder / name) if (folder / MANIFEST).exists() else None
