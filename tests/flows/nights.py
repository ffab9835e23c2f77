"""What a finished night leaves in its home, as far as later nights look at it."""

import json
from pathlib import Path
from typing import Any

from conf.load import frozen_yaml
from conf.schema import NightConfig
from conf.storage.home import SUMMARY, Home


def finished_night(home: Home, date: str, config: NightConfig, **summary: Any) -> Path:
    """Write the night's configuration and summary. Returns its folder."""
    folder = home.night(date)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(frozen_yaml(config))
    (folder / SUMMARY).write_text(json.dumps(summary))
    return folder
