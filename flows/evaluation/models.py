"""Who sits an exam outside of a night: any model, called by the digest of its content."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from conf.schema import EngineConfig, StudentConfig
from conf.storage.home import DIGEST, Home, InputError
from models.checkpoint import digest_folder, is_whole
from tasks.registry.import_model import CODE, PATTERNS, check_loads, find_model

log = logging.getLogger("nightschool")


@dataclass(frozen=True)
class Sitter:
    """A model as it was `named`, its folder, and the student's settings for it."""

    named: str
    folder: Path
    student: StudentConfig

    def under_its_digest(self, links: Path) -> Path:
        """The same folder under a name that is its content's digest, as everything that is kept of an exam wants it.

        A checkpoint of a home has that name; any other gets a link in `links`.
        """
        if is_whole(self.folder):
            return self.folder
        link = links / digest_folder(self.folder)
        if not link.exists():
            link.symlink_to(self.folder, target_is_directory=True)
        return link


def find_sitter(source: str, option: str, student: StudentConfig, home: Home) -> Sitter:
    """The model that a folder, a hub id or the digest of one of the home's checkpoints means.

    Raises InputError, in the name of `option`, where there is none, or none that can be loaded, or a checkpoint of the
    home is not what its name says: its answers would be kept under the name of another. Its code is trusted where the
    configuration names it, and under the home, which has none but that; nowhere else.
    """
    kept = home.checkpoints / source
    folder = kept if DIGEST.fullmatch(source) and kept.is_dir() else Path(source)
    trusted = student.trust_remote_code and (
        source == student.source or folder.resolve() in (Path(student.source).resolve(), _kept(folder, home))
    )
    patterns = [*PATTERNS, CODE] if trusted else PATTERNS
    found = find_model(str(folder), student.revision if source == student.source else None, option, patterns)
    if DIGEST.fullmatch(found.name) and _kept(found, home) and not is_whole(found):
        raise InputError(f"{option}: {found} was changed or damaged; name another checkpoint")
    check_loads(found, option, trusted)
    return Sitter(source, found.resolve(), student.model_copy(update={"trust_remote_code": trusted}))


def _kept(folder: Path, home: Home) -> Path | None:
    """The folder itself, where it is one of the home's checkpoints."""
    return folder.resolve() if folder.resolve().parent == home.checkpoints.resolve() else None


def engine_for(config: EngineConfig, checkpoint: Path) -> EngineConfig:
    """The engine's settings, with no more context than a model has."""
    stated = json.loads((checkpoint / "config.json").read_text()).get("max_position_embeddings")
    if not isinstance(stated, int) or config.max_model_len <= stated:
        return config
    log.warning("the model has a context of %d tokens, and engine.max_model_len wants %d", stated, config.max_model_len)
    return config.model_copy(update={"max_model_len": stated})
