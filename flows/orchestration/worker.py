"""Runs a home's Prefect worker: creates its work pool, deploys prefect.yaml and starts its process."""

import datetime
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectAlreadyExists
from prefect.workers.process import ProcessWorker

from conf.storage.home import Home
from flows.orchestration.reconcile import client_of, resume_crashed
from flows.orchestration.server import ServerError
from flows.run.child import Child, end_child, start_child

POOL, NIGHT = "nightschool", "nightly"  # the work pool and the nightly deployment, as prefect.yaml names them
PROJECT = Path(__file__).parents[2]
DEPLOYMENTS = PROJECT / "prefect.yaml"
PREFECT = [sys.executable, "-m", "prefect"]
DEPLOY = [*PREFECT, "--no-prompt", "deploy", "--all"]
# One run at a time: the machine has no room for a second model.
WORKER = [*PREFECT, "worker", "start", "--pool", POOL, "--type", "process", "--name", POOL, "--limit", "1"]
STOP_LIMIT = 20  # seconds; an interrupted night stops within a few
SCHEDULE_LIMIT = 30  # seconds to wait for the server to schedule the next night


@contextmanager
def working(home: Home, api: str, key: str | None) -> Iterator[tuple[Child, Path]]:
    """Run a home's worker during the `with` block. `api`, `key`: the Prefect server's API URL and user:password.

    Before the worker starts, deploys prefect.yaml and resumes a crashed night. Prints which night resumes and when the
    next one starts. Yields the worker's process and the path of its log. Raises ServerError if the deployment fails.
    """
    environment, logs = environment_of(home, api, key), home.root / "prefect"
    with client_of(api, key) as client:
        template = ProcessWorker.get_default_base_job_template()
        with suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
        if start_child(DEPLOY, environment, logs / "deploy.log", cwd=PROJECT).wait():
            raise ServerError(f"{DEPLOYMENTS} could not be deployed; see {logs / 'deploy.log'}")
        for date in resume_crashed(client, home):
            print(f"Resuming the interrupted night {date}.")
        process = start_child(WORKER, environment, logs / "worker.log", cwd=PROJECT)
        try:
            print(f"Next night: {next_night(client)}")
            yield process, logs / "worker.log"
        finally:
            end_child(process, STOP_LIMIT)  # Prefect then shows the worker's run as crashed


def environment_of(home: Home, api: str, key: str | None) -> dict[str, str]:
    """Return the environment variables for a home's `prefect` commands. `api`, `key`: as for `working`."""
    return os.environ | {
        "NIGHTSCHOOL_HOME": str(home.root),
        "PREFECT_HOME": str(home.root / "prefect"),
        "PREFECT_API_URL": api,
        "PWD": str(PROJECT),  # prefect.yaml runs the flows in this directory
        **({"PREFECT_API_AUTH_STRING": key} if key else {}),
    }


def next_night(client: SyncPrefectClient) -> str:
    """Wait until the server has scheduled the next night. Return its local start, or a hint after SCHEDULE_LIMIT."""
    limit, now = time.monotonic() + SCHEDULE_LIMIT, datetime.datetime.now(datetime.UTC)
    while time.monotonic() < limit:
        runs = client.read_flow_runs(
            deployment_filter=DeploymentFilter.model_validate({"name": {"any_": [NIGHT]}}),
            flow_run_filter=FlowRunFilter.model_validate({"next_scheduled_start_time": {"after_": now}}),
            sort=FlowRunSort.NEXT_SCHEDULED_START_TIME_ASC,
            limit=1,
        )
        if runs and (moment := runs[0].next_scheduled_start_time):
            return f"{moment.astimezone():%Y-%m-%d %H:%M %Z}"
        time.sleep(0.5)
    return "not scheduled yet; the page of its deployment shows why"
