"""The build step of prefect.yaml's deployments: fills in values that depend on the configuration or the machine."""

import shlex
import sys
from pathlib import Path
from typing import Any

from conf.load import load_night
from conf.sections.hours import machine_zone


def night_values(file: str) -> dict[str, Any]:
    """Return a configuration as a flow parameter, the time zone of its clock times, and the command that a worker runs.

    The parameter contains only the settings in the file. For all others, Prefect's form shows the defaults.
    """
    config = load_night(Path(file))
    return {
        "config": config.model_dump(mode="json", exclude_unset=True),
        "time_zone": config.deadline_time_zone or machine_zone(),
        "command": shlex.join([sys.executable, "-m", "flows.orchestration.worker_run"]),
    }
