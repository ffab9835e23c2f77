"""A round whose outcome an earlier start of the night left, and that no round can go on from any more."""

from pathlib import Path

from models.checkpoint import is_whole
from models.optim.trainer_state import state_is_whole


class LostRoundError(Exception):
    """What is to go on from a round cannot: its outcome has to be made again."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"round {number} is taken again: {why}")
        self.number = number


def require_outcome(number: int, policy: Path, state: Path | None) -> None:
    """Raises LostRoundError unless a round's checkpoint and, where one is named, its trainer state are whole."""
    if not is_whole(policy):
        raise LostRoundError(number, f"its checkpoint {policy.name} was damaged")
    if state is not None and not state_is_whole(state, policy.name):
        raise LostRoundError(number, "its trainer state was damaged")
