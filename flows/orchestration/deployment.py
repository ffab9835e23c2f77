"""The build step of prefect.yaml's deployments: it provides values that depend on the configuration or the machine."""

import shlex
import sys
from pathlib import Path
from typing import Any

from conf.load import load_night
from conf.sections.hours import machine_zone


def night_values(file: str) -> dict[str, Any]:
    """Return a configuration as a flow parameter, the time zone of its clock times, and the command that a worker runs.

    The parameter has only the settings that the file sets. Prefect's form shows the defaults of all others.
    """
    config = load_night(Path(file))
    return {
        "config": config.model_dump(mode="json", exclude_unset=True),
        "time_zone": config.deadline_time_zone or machine_zone(),
        "command": shlex.join([sys.executable, "-m", "flows.orchestration.worker_run"]),
    }
