"""Whether the disk has room for what the next round writes."""

from pathlib import Path

from tasks.alarms import Alarm

STATE_PER_CHECKPOINT = 6  # where no state was written yet: two moments and the weight, 4 bytes each, for a bf16 of 2
SHORT = 3  # times what a round writes: exam, databases and report want room too


def disk_alarms(free: int, needed: int, number: int) -> list[Alarm]:
    """The alarm after round `number`, of the bytes that are free and those that the next round writes."""
    if free >= SHORT * needed:
        return []
    sentence = (
        f"The disk runs short: after round {number} {free / 1e9:.1f} GB are free, "
        f"and a round writes {needed / 1e9:.1f} GB."
    )
    return [Alarm("disk_short", free < needed, sentence, number)]


def bytes_of_a_round(checkpoint: Path, state: Path) -> int:
    """What a round writes: a checkpoint and a trainer state as large as these; of no state yet an estimate."""
    weights = _size(checkpoint)
    return weights + (_size(state) or STATE_PER_CHECKPOINT * weights)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*"))  # none where the round is long past
