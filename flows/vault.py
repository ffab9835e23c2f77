"""The vault's exams: who serves from now on, and the oldest ancestor, whose answers are kept."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.night import Night
from models.checkpoint import is_whole
from tasks.alarms import Alarm
from tasks.evaluate import evaluate
from tasks.registry import Version
from tasks.stage import Artifact
from tasks.vault import vault, vault_alarms

ANCESTOR = "vault/ancestor"


class Vault:
    """The night's vault; without `exam.vault` it asks nobody anything."""

    def __init__(self, night: Night, versions: Sequence[Version], champion: Path) -> None:
        """`versions`: the registered ones, the oldest first; before there are any, the champion is the first."""
        self.night = night
        here = (one for one in versions if is_whole(night.home.checkpoints / one.digest))
        self.first = next(here, None) if night.config.exam.vault else None
        self.ancestor = night.home.checkpoints / self.first.digest if self.first else champion

    def begin(self) -> None:
        """The oldest ancestor's answers: before the rounds, whose number depends on the hours that are left."""
        if self.night.config.exam.vault:
            self._sit(ANCESTOR, self.ancestor, self._answered_before())

    def alarms(self, serving: Path) -> list[Alarm]:
        """Has who serves from now on sit the vault's exam. Returns the alarm that comes of it."""
        config = self.night.config
        if not config.exam.vault or serving == self.ancestor:
            return []
        sat = {"ancestor": self._sit(ANCESTOR, self.ancestor), "serving": self._sit("vault/serving", serving)}
        found = self.night.run(vault, "vault/comparison", **sat, exam=config.exam, seed=config.seed)
        return vault_alarms(found.read_json("vault.json"), self._way_back())

    def _sit(self, place: str, checkpoint: Path, known: Artifact | None = None) -> Artifact:
        sat = {checkpoint: known} if known else {}
        return self.night.run(evaluate, place, **self._arguments(checkpoint), sat=sat)

    def _answered_before(self) -> Artifact | None:
        """Its answers of an earlier night, to the same questions under the same settings."""
        for folder in sorted(self.night.home.nights.glob("????-??-??"), reverse=True):
            arguments = self._arguments(self.ancestor)
            if folder != self.night.folder and (known := evaluate.committed(folder, ANCESTOR, **arguments, sat={})):
                return known
        return None

    def _arguments(self, checkpoint: Path) -> dict[str, Any]:
        config = self.night.config
        return {
            "parts": config.exam.vault_parts,
            "checkpoint": checkpoint,
            "student": config.student,
            "config": config.sampler,
            "sandbox": config.sandbox,
            "max_completion_tokens": config.exam.max_completion_tokens,
            "engine": self.night.engine,
        }

    def _way_back(self) -> str:
        own = shlex.join(["--config", str(self.night.folder / "config.yaml")])
        first = f", or to the first student with `nightschool promote {self.first.version} {own}`" if self.first else ""
        return f"`nightschool rollback {own}`{first}."
