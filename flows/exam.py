"""An exam outside of any night: one checkpoint, the parts of a configuration."""

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from prefect import flow

from conf.home import Home
from conf.schema import NightConfig, StudentConfig
from models.engine_environment import engine_environment
from tasks.decision import wilson
from tasks.evaluate import evaluate
from tasks.tables import EVALUATIONS, read_table
from tasks.workers import Worker


@flow(name="exam", flow_run_name="exam of {checkpoint}", description="One checkpoint sits the exam.")
def exam(checkpoint: Path, config: NightConfig) -> dict[str, dict[str, Any]]:
    """Accuracy with its 95 % interval and n, by part of the exam."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Worker("engine", engine_environment(config.engine.kv_cache_gb), Path(folder) / "engine.log")
        try:
            found = evaluate(
                Path(folder),
                "evaluate",
                parts=config.exam.parts,
                checkpoint=checkpoint,
                student=own(config.student, checkpoint, Home.here().checkpoints),
                config=config.engine,
                sandbox=config.sandbox,
                max_completion_tokens=config.exam.max_completion_tokens,
                engine=engine,
                sat={},
            )
        finally:
            engine.close()
        table = read_table(found.folder / "evaluations.parquet", EVALUATIONS)
    graded = table.dropna(subset=["correct"])
    return {
        str(part): dataclasses.asdict(wilson(int(rows.correct.sum()), len(rows)))
        for part, rows in graded.groupby("benchmark", sort=False)
    }


def own(student: StudentConfig, checkpoint: Path, checkpoints: Path) -> StudentConfig:
    """The student's settings, for a checkpoint.

    Code is trusted in the folder that they name and in those under the home, which have none but that; nowhere else.
    """
    named = checkpoint.parent == checkpoints or checkpoint == Path(student.source).resolve()
    return student if named else student.model_copy(update={"trust_remote_code": False})
