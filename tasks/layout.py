"""Where the rounds of a night lie in its folder."""

from pathlib import Path

from tasks.stage import MANIFEST


def place_of(number: int) -> str:
    """The place of a round, as of a stage: `round-03`."""
    return f"round-{number:02d}"


def ranking_place(first: int, number: int) -> str:
    """The place of the ranking of held-out picks after a round of the block that begins with `first`; as the block
    begins, that is the round before.
    """
    if number >= first:
        return f"{place_of(number)}/rank_picks"
    return f"rank_picks-{first}" if first > 1 else "rank_picks"


def rounds(night: Path) -> list[tuple[int, Path]]:
    """The rounds' numbers and folders, in order."""
    return sorted((int(folder.name.removeprefix("round-")), folder) for folder in night.glob("round-*"))


def is_committed(folder: Path) -> bool:
    """Whether a round's update is durable."""
    return (folder / "checkpoint" / MANIFEST).exists()


def committed_rounds(night: Path) -> list[Path]:
    """The folders of the rounds whose updates are durable, in order."""
    return [folder for _, folder in rounds(night) if is_committed(folder)]


def passes(folder: Path) -> list[Path]:
    """A round's folder, and those of its refills: each has prompts, rollouts and scores of its own."""
    return [folder, *sorted(folder.glob("refill-*"))]
