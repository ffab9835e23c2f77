"""Checkpoints: Hugging Face model folders, named by the digest of their content."""

import hashlib
import json
import shutil
from pathlib import Path

from models.durable import sync, sync_folder

CARD = "README.md"  # people may edit it: outside the digest
LINEAGE = "nightschool.json"


class DamagedCheckpointError(Exception):
    """A checkpoint's content is not what its name says."""


def digest_file(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_folder(folder: Path) -> str:
    """A digest over the names and contents of a folder's files, its card apart: 20 hex digits."""
    whole = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file() and file.name != CARD):
        whole.update(f"{file.relative_to(folder)} {digest_file(file)}\n".encode())
    return whole.hexdigest()[:20]


def write_lineage(folder: Path, parent: str | None) -> None:
    """Notes the digest of the checkpoint that this one was made from; part of the digest."""
    (folder / LINEAGE).write_text(json.dumps({"version": 1, "parent": parent}) + "\n")


def parent_of(checkpoint: Path) -> str | None:
    """The digest of the checkpoint that this one was made from; None for a first one."""
    return json.loads((checkpoint / LINEAGE).read_text())["parent"]


def keep(draft: Path, checkpoints: Path) -> Path:
    """Moves a finished folder to its digest's name, durably, in one rename. Returns the checkpoint.

    A checkpoint of the same content that is there already stays, and the draft goes; one that was damaged since is
    replaced.
    """
    sync_folder(draft)
    target = checkpoints / digest_folder(draft)
    if target.exists() and digest_folder(target) == target.name:
        shutil.rmtree(draft)
    else:
        shutil.rmtree(target, ignore_errors=True)
        checkpoints.mkdir(parents=True, exist_ok=True)
        draft.rename(target)
        sync(checkpoints)
    return target


def verify(checkpoint: Path) -> None:
    """Raises DamagedCheckpointError unless the folder's content has the digest that it is named by."""
    found = digest_folder(checkpoint)
    if found != checkpoint.name:
        raise DamagedCheckpointError(
            f"{checkpoint}: its content has the digest {found}, not {checkpoint.name}: it was changed or damaged; "
            "remove the folder, and the night makes it again"
        )
