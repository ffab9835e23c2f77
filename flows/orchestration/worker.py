"""Prefect's worker of a home: its work pool, what prefect.yaml deploys to it, and its process."""

import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterNextScheduledStartTime,
)
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectAlreadyExists
from prefect.workers.process import ProcessWorker

from conf.storage.home import Home, InputError
from flows.orchestration.reconcile import client_of, go_on
from flows.orchestration.server import ServerError
from tasks.workers import die_with_parent

POOL, NIGHT = "nightschool", "nightly"  # the work pool and the nightly deployment, as prefect.yaml names them
PROJECT = Path(__file__).parents[2]
DEPLOYMENTS = PROJECT / "prefect.yaml"
PREFECT = [sys.executable, "-m", "prefect"]
# One run at a time: a machine that holds one model holds no second one.
WORKER = [*PREFECT, "worker", "start", "--pool", POOL, "--type", "process", "--name", POOL, "--limit", "1"]
STOP_LIMIT = 20  # seconds; a night that is asked to end needs a few
PATIENCE = 30  # seconds


def require_project() -> None:
    """Raises InputError where there is nothing to deploy: a worker runs the files of a checkout."""
    if not DEPLOYMENTS.is_file():
        raise InputError(
            f"{DEPLOYMENTS}: no such file; the schedule runs from a checkout of Night school, installed by make setup"
        )


@dataclass(frozen=True)
class AtWork:
    """A worker that runs, its log, and what people are told of its nights."""

    process: subprocess.Popen[bytes]
    log: Path
    told: list[str]


@contextmanager
def working(home: Home, api: str, key: str | None) -> Iterator[AtWork]:
    """A worker of a home at the server `api`, which asks for `key` (user:password); ended afterwards, with its run.

    What prefect.yaml says is deployed first, and a night that crashed goes on. Raises ServerError where that fails.
    """
    environment, logs = environment_of(home, api, key), home.root / "prefect"
    with client_of(api, key) as client:
        make_pool(client)
        deploy(environment, logs / "deploy.log")
        told = [f"The night {night}, which was interrupted, goes on." for night in go_on(client)]
        process = _start(WORKER, environment, logs / "worker.log")
        try:
            yield AtWork(process, logs / "worker.log", [*told, f"Next night: {next_night(client)}"])
        finally:
            _stop(process)


def environment_of(home: Home, api: str, key: str | None) -> dict[str, str]:
    """In which `prefect` works for a home. `api`: where its server is; `key`: what that asks for, as user:password."""
    return os.environ | {
        "NIGHTSCHOOL_HOME": str(home.root),
        "PREFECT_HOME": str(home.root / "prefect"),
        "PREFECT_LOCAL_STORAGE_PATH": str(home.root / "prefect" / "storage"),
        "PREFECT_API_URL": api,
        "PWD": str(PROJECT),  # of which prefect.yaml makes the directory of the runs
        **({"PREFECT_API_AUTH_STRING": key} if key else {}),
    }


def make_pool(client: SyncPrefectClient) -> None:
    """Makes the work pool, unless it is there."""
    template = ProcessWorker.get_default_base_job_template()
    with suppress(ObjectAlreadyExists):
        client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))


def deploy(environment: dict[str, str], log: Path) -> None:
    """Deploys prefect.yaml. Raises ServerError, which names the log."""
    done = _start([*PREFECT, "--no-prompt", "deploy", "--all"], environment, log).wait()
    if done:
        raise ServerError(f"{DEPLOYMENTS} could not be deployed; {log} says why")


def next_night(client: SyncPrefectClient) -> str:
    """When the next night begins, by this machine's clocks; the server schedules it seconds after it was deployed."""
    limit = time.monotonic() + PATIENCE
    later = FlowRunFilterNextScheduledStartTime.model_validate({"after_": datetime.datetime.now(datetime.UTC)})
    while time.monotonic() < limit:
        runs = client.read_flow_runs(
            deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[NIGHT])),
            flow_run_filter=FlowRunFilter(next_scheduled_start_time=later),
            sort=FlowRunSort.NEXT_SCHEDULED_START_TIME_ASC,
            limit=1,
        )
        if runs and (moment := runs[0].next_scheduled_start_time):
            return f"{moment.astimezone():%Y-%m-%d %H:%M %Z}"
        time.sleep(0.5)
    return "not scheduled yet; the page of its deployment shows why"


def _stop(worker: subprocess.Popen[bytes]) -> None:
    """Has the worker end its run, which is then shown as crashed, and itself; what takes too long is killed."""
    worker.terminate()
    with suppress(subprocess.TimeoutExpired):
        worker.wait(STOP_LIMIT)
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the services, which end it
            preexec_fn=lambda: die_with_parent(parent),
        )
