"""Checkpoints: Hugging Face model folders, named by the digest of their content."""

import hashlib
import json
import shutil
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from conf.storage.durable import make_folder, sync, sync_folder
from conf.storage.home import NightError, inside

CARD = "README.md"  # people may edit it: outside the digest, as is what editors and drafts of it leave beside it
LINEAGE = "nightschool.json"
TOKENIZER = "tokenizer.json"
ARCHITECTURE = ("model_type", "architectures", "vocab_size", "hidden_size", "num_hidden_layers")  # of config.json
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
STORED = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}  # safetensors' names, and those of config.json


class DamagedCheckpointError(NightError):
    """A checkpoint's content is not what its name says, or not there."""


def digest_file(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_folder(folder: Path) -> str:
    """A digest over the names and contents of a folder's files, its card apart: 20 hex digits."""
    whole = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file() and not _is_card(file)):
        whole.update(f"{file.relative_to(folder)} {digest_file(file)}\n".encode())
    return whole.hexdigest()[:20]


def _is_card(file: Path) -> bool:
    """The card, a draft of it that a crash left, or an editor's copy (`.README.md.swp`); no weights, whatever their
    name: they would be loaded.
    """
    return CARD in file.name and file.suffix not in WEIGHTS


def write_lineage(folder: Path, parent: str | None, base: str | None = None) -> None:
    """Notes the digest of the checkpoint that this one was made from, and, of an adapter, its base's.

    Both are part of its own digest.
    """
    lineage = {"version": 1, "parent": parent} | ({} if base is None else {"base": base})
    (folder / LINEAGE).write_text(json.dumps(lineage) + "\n")


def parent_of(checkpoint: Path) -> str | None:
    """The digest of the checkpoint that this one was made from; None for a first one."""
    return _lineage(checkpoint)["parent"]


def base_of(checkpoint: Path) -> Path:
    """The full checkpoint that an adapter belongs to, beside it; a full checkpoint is its own base.

    Raises DamagedCheckpointError where the base is gone, NightError where its name could be none.
    """
    named = _lineage(checkpoint).get("base")
    base = checkpoint if named is None else inside(checkpoint.parent, named)
    if not base.is_dir():
        raise DamagedCheckpointError(f"{checkpoint}: its base {base.name} is gone: begin the night anew with --fresh")
    return base


def _lineage(checkpoint: Path) -> dict[str, str | None]:
    file = checkpoint / LINEAGE
    return json.loads(file.read_text()) if file.exists() else {"parent": None}


def copy_companions(checkpoint: Path, target: Path) -> None:
    """Copies what lies beside a checkpoint's weights (configuration, tokenizer, template) into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for file in checkpoint.iterdir():
        weights = file.suffix in WEIGHTS or file.name.endswith(".index.json")
        if file.is_file() and not weights and not _is_card(file):
            shutil.copy(file, target / file.name)


def misfits(checkpoint: Path) -> list[str]:
    """The tensors that are stored in another precision than config.json says, as `name (precision)`."""
    config = json.loads((checkpoint / "config.json").read_text())
    stated = config.get("dtype") or config.get("torch_dtype")
    found = []
    for file in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                stored = tensors.get_slice(name).get_dtype()
                if STORED.get(stored, stored) != stated:
                    found.append(f"{name} ({STORED.get(stored, stored)}, not {stated})")
    return found


def unlike(one: Path, other: Path) -> str | None:
    """In what two checkpoints differ that the nights of one student leave alone, in words; None where in nothing."""
    one, other = base_of(one), base_of(other)
    shapes = [_shape(one), _shape(other)]
    for key in ARCHITECTURE:
        if shapes[0].get(key) != shapes[1].get(key):
            return f"another architecture ({key}: {shapes[0].get(key)}, not {shapes[1].get(key)})"
    tokenizers = [digest_file(file) if file.exists() else None for file in (one / TOKENIZER, other / TOKENIZER)]
    return None if tokenizers[0] == tokenizers[1] else f"another tokenizer ({TOKENIZER} differs)"


def _shape(checkpoint: Path) -> dict[str, object]:
    file = checkpoint / "config.json"
    return json.loads(file.read_text()) if file.exists() else {}


def same_weights(one: Path, other: Path) -> bool:
    """Whether two checkpoints of one kind hold the same tensors, whatever else they hold."""
    first, second = _tensors(one), _tensors(other)
    return first.keys() == second.keys() and all(first[name].equal(second[name]) for name in first)


def _tensors(checkpoint: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for file in checkpoint.glob("*.safetensors"):
        found |= load_file(file)
    return found


def keep(draft: Path, checkpoints: Path, *, durable: bool = True) -> Path:
    """Moves a finished folder to its digest's name in one rename. Returns the checkpoint.

    A checkpoint of the same content that is there already stays, and the draft goes; one that was damaged since is
    replaced. Not `durable`: a power cut may damage it until `make_durable`.
    """
    target = checkpoints / digest_folder(draft)
    if is_whole(target):
        shutil.rmtree(draft)
    else:
        shutil.rmtree(target, ignore_errors=True)
        make_folder(checkpoints)
        draft.rename(target)
    if durable:
        make_durable(target)
    return target


def make_durable(checkpoint: Path) -> None:
    """Forces a checkpoint to the disk."""
    sync_folder(checkpoint)
    sync(checkpoint.parent)


def is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint is there, with the content that it is named by."""
    return checkpoint.is_dir() and digest_folder(checkpoint) == checkpoint.name


def verify(checkpoint: Path, remedy: str = "the same command makes it again") -> None:
    """Raises DamagedCheckpointError, which says what to do about it, unless the folder has the digest of its name."""
    if not checkpoint.is_dir():
        raise DamagedCheckpointError(f"{checkpoint}: this checkpoint is gone; {remedy}")
    found = digest_folder(checkpoint)
    if found != checkpoint.name:
        raise DamagedCheckpointError(
            f"{checkpoint}: its content has the digest {found}, not {checkpoint.name}: it was changed or damaged; "
            f"{remedy}"
        )
