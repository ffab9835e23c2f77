"""Checkpoints: Hugging Face model folders, named by the digest of their content."""

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from conf.storage.durable import make_folder, read_json, sync, sync_folder, write_atomically
from conf.storage.home import NightError, inside

if TYPE_CHECKING:
    from torch import Tensor

CARD = "README.md"  # users may edit it, so it is not in the digest, and neither are drafts of it or editors' copies
LINEAGE = "nightschool.json"
LEARNED = "learned.json"  # not in the digest: it lists the lessons learned, and does not describe the weights
TOKENIZER = "tokenizer.json"
ARCHITECTURE = ("model_type", "architectures", "vocab_size", "hidden_size", "num_hidden_layers")  # keys of config.json
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}  # from safetensors' names to those in config.json


class DamagedCheckpointError(NightError):
    """A checkpoint is missing, or its content does not match the digest that is its name."""


class MergeError(NightError):
    """A merged checkpoint does not compute what the model with its adapters computes."""


def digest_file(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_folder(folder: Path) -> str:
    """Return a digest (20 hex digits) of the names and contents of a folder's files, except the card and LEARNED."""
    digest = hashlib.sha256()
    files = (file for file in folder.rglob("*") if file.is_file() and not _is_card(file) and file.name != LEARNED)
    for file in sorted(files):
        digest.update(f"{file.relative_to(folder)} {digest_file(file)}\n".encode())
    return digest.hexdigest()[:20]


def _is_card(file: Path) -> bool:
    """Return whether a file is the card, a draft of it, or an editor's copy (`.README.md.swp`).

    A weights file never counts as a card, whatever its name, because it would be loaded.
    """
    return CARD in file.name and file.suffix not in WEIGHTS


def write_lineage(folder: Path, parent: str | None, base: str | None = None) -> None:
    """Record the digests of the parent and (for adapters) the base, in a file that the checkpoint's digest covers."""
    lineage = {"version": 1, "parent": parent} | ({} if base is None else {"base": base})
    (folder / LINEAGE).write_text(json.dumps(lineage) + "\n")


def learned(checkpoint: Path) -> frozenset[str]:
    """Return the names of the journal's lessons (see `tasks/journal/read.py`) that a checkpoint has learned."""
    return frozenset(read_json(checkpoint / LEARNED, ()))


def write_learned(folder: Path, lessons: Iterable[str]) -> None:
    """Record the names of all lessons that a checkpoint has learned. `lessons` must include those of its parent."""
    if lessons := sorted(set(lessons)):
        write_atomically(folder / LEARNED, json.dumps(lessons))


def parent_of(checkpoint: Path) -> str | None:
    """Return the digest of the checkpoint that this one was made from, or None if it has no parent."""
    return read_json(checkpoint / LINEAGE, {}).get("parent")


def base_of(checkpoint: Path) -> Path:
    """Return the full checkpoint that an adapter belongs to; a full checkpoint is its own base.

    Raises DamagedCheckpointError if the base is missing, and NightError if the recorded name of the base is not valid.
    """
    name = read_json(checkpoint / LINEAGE, {}).get("base")
    base = checkpoint if name is None else inside(checkpoint.parent, name)
    if not base.is_dir():
        raise DamagedCheckpointError(f"{checkpoint}: its base {base.name} is gone: start the night over with --fresh")
    return base


def is_adapter(checkpoint: Path) -> bool:
    """Return whether a checkpoint is an adapter rather than a full model."""
    return base_of(checkpoint) != checkpoint


def copy_companions(checkpoint: Path, target: Path) -> None:
    """Copy all files except weights, card and LEARNED from a checkpoint, or from an adapter's base, to `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for file in base_of(checkpoint).iterdir():
        weights = file.suffix in WEIGHTS or file.name.endswith(".index.json")
        if file.is_file() and not weights and not _is_card(file) and file.name != LEARNED:
            shutil.copy(file, target / file.name)


def wrong_precisions(checkpoint: Path) -> list[str]:
    """Return the tensors whose precision is not the one in config.json, each as `name (float32, not bfloat16)`."""
    from safetensors import safe_open

    config = read_json(checkpoint / "config.json", {})
    stated = config.get("dtype") or config.get("torch_dtype")
    wrong = []
    for file in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                stored = tensors.get_slice(name).get_dtype()
                dtype = DTYPES.get(stored, stored)
                if dtype != stated:
                    wrong.append(f"{name} ({dtype}, not {stated})")
    return wrong


def incompatibility(first: Path, second: Path) -> str | None:
    """Return how two checkpoints' architectures or tokenizers differ; None if both can belong to the same student."""
    first, second = base_of(first), base_of(second)
    configs = [read_json(folder / "config.json", {}) for folder in (first, second)]
    for key in ARCHITECTURE:
        values = [config.get(key) for config in configs]
        if values[0] != values[1]:
            return f"another architecture ({key}: {values[0]}, not {values[1]})"
    tokenizers = [digest_file(file) if file.exists() else None for file in (first / TOKENIZER, second / TOKENIZER)]
    return None if tokenizers[0] == tokenizers[1] else f"another tokenizer ({TOKENIZER} differs)"


def same_weights(first: Path, second: Path) -> bool:
    """Return whether two checkpoints hold the same tensors, whatever other files they have."""
    ours, theirs = _tensors(first), _tensors(second)
    return ours.keys() == theirs.keys() and all(ours[name].equal(theirs[name]) for name in ours)


def _tensors(checkpoint: Path) -> dict[str, "Tensor"]:
    from safetensors.torch import load_file  # imports torch, which most users of this module do without

    return {name: tensor for file in checkpoint.glob("*.safetensors") for name, tensor in load_file(file).items()}


def new_draft(checkpoints: Path) -> Path:
    """Delete any earlier draft, and return the folder in which to write a checkpoint before its digest is known."""
    draft = checkpoints / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    return draft


def keep(draft: Path, checkpoints: Path, *, durable: bool = True) -> Path:
    """Rename a finished draft to its digest, atomically, and return the resulting checkpoint.

    If an intact checkpoint of that name exists, the draft's lessons are added to it, and the draft is removed. A
    damaged one is replaced. With `durable=False`, a power cut may damage the checkpoint until `make_durable` is called.
    """
    target = checkpoints / digest_folder(draft)
    if is_intact(target):
        write_learned(target, learned(target) | learned(draft))
        shutil.rmtree(draft)
    else:
        shutil.rmtree(target, ignore_errors=True)
        make_folder(checkpoints)
        draft.rename(target)
    if durable:
        make_durable(target)
    return target


def make_durable(checkpoint: Path) -> None:
    """Flush a checkpoint and its directory entry to disk."""
    sync_folder(checkpoint)
    sync(checkpoint.parent)


def is_intact(checkpoint: Path) -> bool:
    """Return whether a checkpoint exists and its content matches the digest in its name."""
    return checkpoint.is_dir() and digest_folder(checkpoint) == checkpoint.name


def verify(checkpoint: Path, remedy: str = "run the same command again") -> None:
    """Raise DamagedCheckpointError unless the checkpoint is intact. The error message ends with the `remedy`."""
    if not checkpoint.is_dir():
        raise DamagedCheckpointError(f"{checkpoint}: this checkpoint is gone; {remedy}")
    if (digest := digest_folder(checkpoint)) != checkpoint.name:
        raise DamagedCheckpointError(
            f"{checkpoint}: its content has the digest {digest}, not {checkpoint.name}: it was changed or damaged; "
            f"{remedy}"
        )
