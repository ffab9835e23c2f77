"""The build step of the deployments in prefect.yaml: the values that depend on the configuration or the machine."""

import shlex
import sys
from pathlib import Path
from typing import Any

from conf.load import load_night
from conf.sections.hours import machine_zone


def night_values(file: str) -> dict[str, Any]:
    """Return a configuration as a flow's parameter, the time zone of its clocks, and the command of a worker's run.

    The parameter holds only what the file sets; Prefect's form shows the defaults.
    """
    config = load_night(Path(file))
    return {
        "config": config.model_dump(mode="json", exclude_unset=True),
        "time_zone": config.deadline_time_zone or machine_zone(),
        "command": shlex.join([sys.executable, "-m", "flows.orchestration.worker_run"]),
    }
