"""Finds the model for a standalone evaluation, whose results are cached under its digest, and starts its engine."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.schema import NEW, NEW_SIZES, EngineConfig, LoraConfig, NightConfig, StudentConfig
from conf.storage.home import DIGEST, Home, InputError
from models.engine.environment import engine_environment
from models.hf.checkpoint import base_of, digest_folder, is_adapter, is_intact
from tasks.registry.import_model import CODE, PATTERNS, check_loads, find_model
from tasks.rollouts.verified import Player
from tasks.workers.worker import Worker


@dataclass(frozen=True)
class EvaluatedModel:
    """A model to evaluate. `source`: the folder, hub id or digest that the user named. `student`: how to load it."""

    source: str
    folder: Path
    student: StudentConfig

    def named_by_digest(self, links: Path) -> Path:
        """Return a path named after the model's digest, the key of cached results: its folder, or a link in `links`."""
        if is_intact(self.folder):
            return self.folder
        link = links / digest_folder(self.folder)
        if not link.exists():
            link.symlink_to(self.folder, target_is_directory=True)
        return link


def resolve_model(source: str, option: str, student: StudentConfig, home: Home) -> EvaluatedModel:
    """Find a model by its folder, hub id, digest in the home (four or more digits), or `new:5M` (trained from scratch).

    The model's own code is trusted only if `student` allows it, and only for that student and the home's checkpoints.
    Raises InputError if a checkpoint in the home is damaged: its results would be cached under the intact one's digest.
    """
    folder = Path(source)
    if re.fullmatch(r"[0-9a-f]{4,20}", source) and not folder.exists():
        folder = home.checkpoints / home.full_digest(source)
        if not folder.is_dir():
            raise InputError(f"{option}: No checkpoint starts with {source}; see `nightschool checkpoints`.")
    if source.startswith(NEW):
        folder = home.students / (size := source.removeprefix(NEW))
        if not folder.is_dir():
            advice = f"run: nightschool pretrain {size}" if size in NEW_SIZES else f"sizes are {', '.join(NEW_SIZES)}"
            raise InputError(f"{option}: there is no {folder}; {advice}")
    is_checkpoint = folder.resolve().parent == home.checkpoints.resolve()
    trusted = student.trust_remote_code and (
        is_checkpoint or source == student.source or folder.resolve() == Path(student.source).resolve()
    )
    revision = student.revision if source == student.source else None
    if not (is_checkpoint and is_adapter(folder)):
        folder = find_model(str(folder), revision, option, [*PATTERNS, CODE] if trusted else PATTERNS)
    if is_checkpoint and DIGEST.fullmatch(folder.name) and not is_intact(folder):
        raise InputError(f"{option}: {folder} was changed or damaged; name another checkpoint")
    check_loads(folder, option, trusted)
    return EvaluatedModel(source, folder.resolve(), student.model_copy(update={"trust_remote_code": trusted}))


@contextmanager
def player_of(model: EvaluatedModel, config: NightConfig, folder: Path) -> Iterator[Player]:
    """Yield a model as a player in an engine of its own, because two models may have different shapes.

    `folder`: for the engine's log and, if need be, a link to the model (see `named_by_digest`).
    """
    checkpoint = model.named_by_digest(folder)
    settings = engine_for(config.sampler, checkpoint)
    engine = Worker("engine", engine_environment(), folder / "engine.log")
    try:
        yield Player(checkpoint, model.student, settings, engine, config.exam.max_completion_tokens)
    finally:
        engine.close()


def engine_for(config: EngineConfig, checkpoint: Path) -> EngineConfig:
    """Return the engine settings with at most the model's context length, and with LoRA if the model is an adapter."""
    context = json.loads((base_of(checkpoint) / "config.json").read_text()).get("max_position_embeddings")
    changes: dict[str, Any] = {"max_model_len": min(config.max_model_len, context or config.max_model_len)}
    if is_adapter(checkpoint):
        adapter = json.loads((checkpoint / "adapter_config.json").read_text())
        changes["lora"] = LoraConfig(rank=adapter["r"], alpha=adapter["lora_alpha"])
    return config.model_copy(update=changes)
