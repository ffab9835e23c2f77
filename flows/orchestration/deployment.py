"""What prefect.yaml leaves open, found out when it is deployed: the build step of its deployments."""

import shlex
import sys
from pathlib import Path
from typing import Any

from conf.load import load_night
from conf.sections.hours import machine_zone


def night_of(file: str) -> dict[str, Any]:
    """A configuration as the parameter of a flow, the zone of its clocks, and the command of a worker's run.

    Of the configuration only what the file says: the form shows the defaults of all the rest. Raises InputError for a
    file that is no configuration.
    """
    config = load_night(Path(file))
    return {
        "config": config.model_dump(mode="json", exclude_unset=True),
        "time_zone": config.deadline_time_zone or machine_zone(),
        "command": shlex.join([sys.executable, "-m", "flows.orchestration.worker_run"]),
    }
