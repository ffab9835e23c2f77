"""Whether the disk has room for what the next round writes."""

from pathlib import Path

from conf.storage.durable import size_of
from tasks.monitoring.alarms import Alarm

STATE_PER_CHECKPOINT = 6  # where no state was written yet: two moments and the weight, 4 bytes each, for a bf16 of 2
ROUNDS_HELD = 2  # rounds whose checkpoint and state stand at the same time: the newest, and the one being written
SPARE = 2  # rounds' room besides: exam, databases and report want some too


def disk_alarms(room: int, of_a_round: int, number: int) -> list[Alarm]:
    """The alarm after round `number`.

    `room`: bytes that are free, or held by rounds, of which each takes an older one's place.
    """
    needed = ROUNDS_HELD * of_a_round
    if room >= needed + SPARE * of_a_round:
        return []
    sentence = (
        f"The disk runs short: after round {number} the rounds have {room / 1e9:.1f} GB, "
        f"and need {needed / 1e9:.1f} GB at a time."
    )
    return [Alarm("disk_short", room < needed, sentence, number)]


def bytes_of_a_round(checkpoint: Path, state: Path) -> int:
    """What a round writes: a checkpoint and a trainer state as large as these; of no state yet an estimate."""
    weights = size_of(checkpoint)
    return weights + (size_of(state) or STATE_PER_CHECKPOINT * weights)
