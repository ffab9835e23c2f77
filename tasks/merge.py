"""The night's adapter becomes a full checkpoint: the candidate that sits the exam, and that may be promoted."""

from pathlib import Path

from tasks import learner
from tasks.stage import stage
from tasks.workers import Worker


@stage(tags=["trainer", "checkpoint"], retries=2, means=("checkpoints", "trainer"))
def merge(folder: Path, *, adapter: Path, trust_remote_code: bool, checkpoints: Path, trainer: Worker) -> None:
    """Adds the adapter of the last round to its base's weights; the probe proves that nothing was lost on the way."""
    merged = trainer.call(learner.merge, adapter, checkpoints, trust_remote_code)
    (folder / "checkpoint.txt").write_text(merged.name)
