"""Sampling from an engine whose sync must be proven: where it is not, once more, by an engine that is started anew.

Nothing that an engine holds can be trusted which was not proven, vLLM's own buffers included; a new process has none
of it. What cannot be proven then either is the checkpoint's fault, and ends the night.
"""

import logging
from typing import Any

from models.probe import SyncError
from models.rollout import Rollout
from tasks import engine as in_engine
from tasks.workers import Worker

log = logging.getLogger("nightschool")


def sample_proven(engine: Worker, *args: Any, **kwargs: Any) -> list[list[Rollout]]:
    """`tasks.engine.sample` in the engine's process. Raises SyncError where a new engine is not proven either."""
    try:
        return engine.call(in_engine.sample, *args, **kwargs)
    except SyncError as error:
        log.warning("%s: the engine is started anew", error)
        engine.on_loss(f"the engine was started anew: {error}")
        engine.close()
        return engine.call(in_engine.sample, *args, **kwargs)
