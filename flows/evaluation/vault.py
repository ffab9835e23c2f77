"""The vault's exams: those of the oldest ancestor, and of who serves from now on."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from flows.evaluation.run import sit
from flows.run.context import Night
from models.checkpoint import is_whole
from models.engine.sync_probe import SyncError
from tasks.evaluation.vault import vault, vault_alarms
from tasks.monitoring.alarms import Alarm
from tasks.registry.mlflow_registry import Version
from tasks.stage import Artifact, committed, uncommit
from tasks.workers import HoursOverError, WorkerDiedError

UNANSWERED = (HoursOverError, WorkerDiedError, SyncError)


class Vault:
    """The night's vault; without `exam.vault` it asks nobody anything."""

    def __init__(self, night: Night, versions: Sequence[Version], champion: Path) -> None:
        """`versions`: the registered ones, the oldest first; before there are any, the champion is the first."""
        self.night = night
        here = (one for one in versions if is_whole(night.home.checkpoints / one.digest))
        self.first = next(here, None) if night.config.exam.vault else None
        self.ancestor = night.home.checkpoints / self.first.digest if self.first else champion
        if self.first is not None and self.first is not versions[0]:
            night.note(
                f"The first student ({versions[0].digest}) is gone or damaged: the vault compares with version "
                f"{self.first.version} instead."
            )

    def begin(self) -> None:
        """The oldest ancestor's answers: before the rounds, whose number depends on the hours that are left."""
        if self.night.config.exam.vault:
            try:
                self._sit("ancestor", self.ancestor)
            except UNANSWERED as error:
                self._left_out(error)

    def alarms(self, serving: Path) -> list[Alarm]:
        """Has who serves from now on sit the vault's exam. Returns the alarm that comes of it.

        The vault decides nothing, and no night fails for it: it is left out where nobody answers.
        """
        config = self.night.config
        if not config.exam.vault or serving == self.ancestor:
            self._forget()
            return []
        try:
            sat = {"ancestor": self._sit("ancestor", self.ancestor), "serving": self._sit("serving", serving)}
        except UNANSWERED as error:
            self._left_out(error)
            self._forget()
            return []
        found = self.night.run(vault, "vault/comparison", **sat, exam=config.exam, seed=config.seed)
        return vault_alarms(found.read_json("vault.json"), self._way_back())

    def _forget(self) -> None:
        """Takes back a comparison with somebody who served before the night was interrupted."""
        if committed(self.night.folder / "vault/comparison"):
            uncommit(self.night.folder / "vault/comparison")

    def _left_out(self, error: Exception) -> None:
        self.night.note(f"The vault's exam was left out: {error}")

    def _sit(self, who: str, checkpoint: Path) -> Artifact:
        return sit(self.night, f"vault/{who}", checkpoint, self.night.config.exam.vault_parts)

    def _way_back(self) -> str:
        own = shlex.join(["--config", str(self.night.folder / "config.yaml")])
        first = f", or to the first student with `nightschool promote {self.first.version} {own}`" if self.first else ""
        return f"`nightschool rollback {own}`{first}."
