"""Decides which of the rounds' checkpoints and trainer states are kept, and deletes those that no later round needs."""

import shutil
from collections.abc import Set
from pathlib import Path

from conf.storage.layout import round_path


class Retention:
    """Decides which of the rounds' checkpoints and trainer states are kept.

    `policies`: the checkpoint of each round so far. `registered`: digests of the registered checkpoints. `states`: the
    folder of the trainer states.
    """

    def __init__(self, states: Path, registered: Set[str]) -> None:
        self.states, self.registered = states, registered
        self.policies: list[Path] = []

    def state(self, number: int) -> Path:
        """Return the folder of a round's trainer state."""
        return self.states / round_path(number)

    def superseded(self, keep: Set[Path]) -> list[Path]:
        """Return the rounds' checkpoints, newest last, except those in `keep` and those that are registered."""
        return [policy for policy in self.policies if policy not in keep and policy.name not in self.registered]

    def outdated(self, number: int, base: Path) -> list[Path]:
        """Return the checkpoints and trainer states that round `number` may delete once the previous round is saved.

        `base`: the checkpoint that the block began with. It is kept, because all rounds of the block read it.
        """
        states = [state for old in range(1, number - 1) if (state := self.state(old)).exists()]
        return self.superseded({base, *self.policies[-1:]}) + states

    def remove(self, keep: Set[Path]) -> None:
        """Delete the rounds' checkpoints, except those in `keep` and those that are registered."""
        for policy in self.superseded(keep):
            shutil.rmtree(policy, ignore_errors=True)
