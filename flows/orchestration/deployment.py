"""The build step of prefect.yaml's deployments: fills in values that depend on the configuration or the machine."""

import shlex
import sys
from pathlib import Path
from typing import Any

from conf.load import load_night, own_file
from conf.sections.hours import machine_zone
from conf.storage.home import Home


def night_values(file: str | None = None) -> dict[str, Any]:
    """Return a configuration as a flow parameter, the time zone of its clock times, and the command that a worker runs.

    The parameter contains only the settings in the file. For all others, Prefect's form shows the defaults. Without a
    file, the parameter is None, and each night takes the home's configuration.
    """
    config = load_night(own_file(Home.here()) if file is None else Path(file))
    return {
        "config": None if file is None else config.model_dump(mode="json", exclude_unset=True),
        "time_zone": config.deadline_time_zone or machine_zone(),
        "command": shlex.join([sys.executable, "-m", "flows.orchestration.worker_run"]),
    }
