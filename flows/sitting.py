"""A checkpoint sits the night's exam."""

from pathlib import Path

from flows.night import Night
from tasks.evaluate import evaluate
from tasks.stage import Artifact


def sit(night: Night, place: str, checkpoint: Path) -> Artifact:
    """Its answers to all parts of the exam, judged, at a place in the night's folder; nobody answers twice a night."""
    config = night.config
    sat = night.run(
        evaluate,
        place,
        parts=config.exam.parts,
        checkpoint=checkpoint,
        student=config.student,
        config=config.sampler,
        sandbox=config.sandbox,
        max_completion_tokens=config.exam.max_completion_tokens,
        engine=night.engine,
        sat=night.sat,
    )
    return night.sat.setdefault(checkpoint, sat)
