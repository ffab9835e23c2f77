"""The alarm on too little disk space for the next round."""

from pathlib import Path

from conf.storage.durable import size_of
from tasks.monitoring.alarms import Alarm

STATE_PER_CHECKPOINT = 6  # of a state not yet written: two moments and a weight of 4 bytes each per bf16 weight of 2
ROUNDS_HELD = 2  # rounds on the disk at the same time: the newest, and the one being written
SPARE = 2  # further rounds' room, for exam, databases and report


def disk_alarms(room: int, of_a_round: int, number: int) -> list[Alarm]:
    """Return the alarm after round `number`, if any.

    `room`: bytes that are free, or held by rounds, since each round replaces an older one. `of_a_round`: bytes that a
    round writes.
    """
    needed = ROUNDS_HELD * of_a_round
    if room >= needed + SPARE * of_a_round:
        return []
    sentence = (
        f"The disk is running short: after round {number} there are {room / 1e9:.1f} GB for rounds, "
        f"which need {needed / 1e9:.1f} GB at a time."
    )
    return [Alarm("disk_short", room < needed, sentence, number)]


def bytes_of_a_round(checkpoint: Path, state: Path) -> int:
    """Return the bytes that a round writes: as much as this checkpoint and state, or an estimate without a state."""
    weights = size_of(checkpoint)
    return weights + (size_of(state) or STATE_PER_CHECKPOINT * weights)
