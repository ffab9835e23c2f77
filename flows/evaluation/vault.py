"""The vault's evaluations: of the oldest ancestor, and of the model that serves from now on."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from flows.evaluation.run import evaluate_checkpoint
from flows.run.context import Night
from models.checkpoint import is_intact
from models.engine.sync_probe import SyncError
from tasks.evaluation.vault import vault, vault_alarms
from tasks.monitoring.alarms import Alarm
from tasks.registry.mlflow_registry import Version
from tasks.stage import Artifact, committed, uncommit
from tasks.workers import HoursOverError, WorkerDiedError

COMPARISON = "vault/comparison"


class Vault:
    """The night's vault. It decides nothing, so no night fails for it; without `exam.vault` it does nothing."""

    def __init__(self, night: Night, versions: Sequence[Version], champion: Path) -> None:
        """`versions`: the registered ones, the oldest first; before there are any, the champion is the ancestor."""
        self.night = night
        whole = (version for version in versions if is_intact(night.home.checkpoints / version.digest))
        self.first = next(whole, None) if night.config.exam.vault else None
        self.ancestor = night.home.checkpoints / self.first.digest if self.first else champion
        if self.first is not None and self.first is not versions[0]:
            night.note(
                f"The first student ({versions[0].digest}) is missing or damaged: the vault compares with version "
                f"{self.first.version} instead."
            )

    def begin(self) -> None:
        """Evaluate the oldest ancestor, before the hours that are left decide the number of rounds."""
        if self.night.config.exam.vault:
            self._evaluate("ancestor", self.ancestor)

    def alarms(self, serving: Path) -> list[Alarm]:
        """Evaluate the model that serves from now on. Return the alarm if it is worse than the oldest ancestor."""
        config, exams = self.night.config, {}
        if config.exam.vault and serving != self.ancestor:
            for role, checkpoint in {"ancestor": self.ancestor, "serving": serving}.items():
                if exam := self._evaluate(role, checkpoint):
                    exams[role] = exam
        if len(exams) < 2:
            if committed(self.night.folder / COMPARISON):  # with a model that served before the night was interrupted
                uncommit(self.night.folder / COMPARISON)
            return []
        comparison = self.night.run(vault, COMPARISON, **exams, exam=config.exam, seed=config.seed)
        return vault_alarms(comparison.read_json("vault.json"), self._way_back())

    def _evaluate(self, role: str, checkpoint: Path) -> Artifact | None:
        """Evaluate a checkpoint on the vault's problems; None, with a note, where it cannot be done."""
        try:
            return evaluate_checkpoint(self.night, f"vault/{role}", checkpoint, self.night.config.exam.vault_parts)
        except (HoursOverError, WorkerDiedError, SyncError) as error:
            self.night.note(f"The vault's exam was skipped: {error}")
            return None

    def _way_back(self) -> str:
        option = shlex.join(["--config", str(self.night.folder / "config.yaml")])
        if self.first is None:
            return f"`nightschool rollback {option}`."
        first = f"`nightschool promote {self.first.version} {option}`"
        return f"`nightschool rollback {option}`, or to the first student with {first}."
