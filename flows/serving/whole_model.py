"""An adapter as a whole model, for the day: what serves then, or is taught, has no base beside it."""

import shutil
from pathlib import Path

from conf.storage.home import Home
from models.hf.checkpoint import is_adapter
from tasks.workers.worker import call_once

LIMIT = 900.0  # seconds to merge


def whole_model(checkpoint: Path, home: Home, trust_remote_code: bool) -> Path:
    """Return a checkpoint's folder or, of an adapter, that of a merged copy under `merged/` in the home.

    The copy has the adapter's name, so that answers are the champion's. Only the newest is kept.
    """
    if not is_adapter(checkpoint):
        return checkpoint
    merged = home.root / "merged"
    target = merged / checkpoint.name
    if not target.exists():
        from models.hf.merging import merge

        shutil.rmtree(merged, ignore_errors=True)
        call_once("merging", LIMIT, merge, checkpoint, merged / "draft", trust_remote_code)
        (merged / "draft").rename(target)
    return target
