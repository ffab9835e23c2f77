"""Enrolment: the student's first checkpoint, from the starter package, a folder or the hub."""

import shutil
from pathlib import Path

from huggingface_hub import snapshot_download

from conf.home import InputError
from conf.schema import StudentConfig
from models.checkpoint import keep, write_lineage
from models.starter import write_starter
from tasks.stage import stage

PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]


@stage(tags=["checkpoint"], means=("checkpoints",))
def enroll(folder: Path, *, student: StudentConfig, checkpoints: Path) -> None:
    """Brings the student into the home as a checkpoint without a parent; notes its digest."""
    draft = checkpoints / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    if student.source == "starter":
        write_starter(draft)
    else:
        source = Path(student.source)
        if not source.is_dir():
            source = Path(snapshot_download(student.source, revision=student.revision, allow_patterns=PATTERNS))
        check_student(source)
        _copy(source, draft)
    write_lineage(draft, parent=None)
    (folder / "checkpoint.txt").write_text(keep(draft, checkpoints).name)


def check_student(source: Path) -> None:
    """Raises InputError where a folder is no Hugging Face model with a tokenizer and safetensors weights."""
    needed = {"config.json": "a model's configuration", "tokenizer.json": "a tokenizer", "*.safetensors": "weights"}
    for pattern, what in needed.items():
        if not any(source.glob(pattern)):
            raise InputError(
                f"student.source: {source}: no {pattern} ({what}) in this folder; "
                "name a folder written by save_pretrained of both model and tokenizer, or a hub id"
            )


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for pattern in PATTERNS:
        for file in source.glob(pattern):
            shutil.copy(file, target / file.name)
