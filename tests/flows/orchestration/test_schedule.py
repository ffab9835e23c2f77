"""`nightschool services` with its real server and worker: what runs."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.objects import FlowRun, StateType

from conf.load import load_night
from conf.storage.home import Home
from flows.orchestration.reconcile import client_of
from flows.orchestration.worker import DEPLOYMENTS, PROJECT, environment_of
from flows.run.dates import date_of_night
from flows.web.address import free_port
from tests.chaos.school import NAME, STARTER, School, open_school, processes_of
from tests.flows.planted import owners
from tests.tasks.doubles.webhook import listening
from tests.waiting import awaited

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

LIMIT = 600  # seconds for a run of a worker
TINY_RUN = shlex.join([sys.executable, "-m", "tests.chaos.worker_run"])


@dataclass
class Services:
    """A running `nightschool services`, and its output until it was ready."""

    process: subprocess.Popen[str]
    output: list[str]
    port: int
    home: Home

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def environment(self) -> dict[str, str]:
        return environment_of(self.home, self.api, None)

    def prefect(self, *arguments: str) -> str:
        """Return what a command of Prefect's prints."""
        command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
        done = subprocess.run(command, env=self.environment, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def start_services(home: Home) -> Services:
    """Start them on free ports and wait until they are ready."""
    prefect, mlflow = free_port(), free_port()
    environment = os.environ | {"NIGHTSCHOOL_HOME": str(home.root), "OMP_NUM_THREADS": "1"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    environment["HOME"] = str(owners(home.root))
    command = [sys.executable, "-m", "flows", "services", f"--prefect-port={prefect}", f"--mlflow-port={mlflow}"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    output: list[str] = []
    for line in process.stdout:
        output.append(line.rstrip())
        if line.startswith("Ctrl-C"):
            return Services(process, output, prefect, home)
    raise AssertionError("\n".join([*output, *(log.read_text() for log in home.root.glob("prefect/*.log"))]))


def kill_services(services: Services) -> list[str]:
    """Kill them, as the kernel does when memory is short. Return what still runs seconds later."""
    services.process.kill()
    services.process.wait()
    return processes_of(services.home, 5)


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> School:
    return open_school(tmp_path_factory.mktemp("schedule") / "tiny", None)


@pytest.fixture(scope="module")
def services(school: School) -> Iterator[Services]:
    started = start_services(school.home("services"))
    yield started
    kill_services(started)


@pytest.fixture(scope="module")
def client(services: Services) -> Iterator[SyncPrefectClient]:
    with client_of(services.api) as client:
        yield client


@pytest.fixture(scope="module")
def tiny(school: School) -> dict[str, Any]:
    """Return the configuration of a tiny night, as a parameter."""
    return load_night(STARTER, [f"name={NAME}", *school.settings]).model_dump(mode="json", exclude_unset=True)


def ended(client: SyncPrefectClient, run: UUID) -> FlowRun:
    """Wait for the end of a run, and return it."""

    def over() -> FlowRun | None:
        current = client.read_flow_run(run)
        return current if current.state is not None and current.state.is_final() else None

    return awaited(over, f"end of run {run}", LIMIT)


def runs_of(client: SyncPrefectClient, deployment: str) -> list[FlowRun]:
    return client.read_flow_runs(deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[deployment])))


def start(client: SyncPrefectClient, **parameters: Any) -> UUID:
    """Have the worker start a night of `starter`, with the tiny engine."""
    deployment = client.read_deployment_by_name("nightly/starter").id
    variables = {"command": TINY_RUN}
    return client.create_flow_run_from_deployment(deployment, parameters=parameters, job_variables=variables).id


@pytest.fixture(scope="module")
def requested(services: Services, client: SyncPrefectClient, tiny: dict[str, Any]) -> FlowRun:
    """The finished run of a tiny night that somebody requested from the deployment `starter`."""
    parameters, variable = json.dumps({"config": tiny}), f"command={TINY_RUN}"
    services.prefect("deployment", "run", "nightly/starter", "--params", parameters, "--job-variable", variable)
    return ended(client, runs_of(client, "starter")[0].id)


def test_a_requested_night_completes(requested: FlowRun, services: Services) -> None:
    date = completed_night(requested)
    folder = services.home.night(date)
    assert json.loads((folder / "summary.json").read_text())["decision"] in ("promoted", "kept")
    assert (folder / "report.html").exists()
    assert load_night(folder / "config.yaml").name == NAME


def completed_night(run: FlowRun) -> str:
    """Assert that the run of a night completed under the right name; return its date."""
    date = date_of_night(run.expected_start_time.astimezone())
    assert (run.name, run.state.type) == (f"{NAME} {date}", StateType.COMPLETED), run.state.message
    return date


@pytest.fixture
def messages(services: Services, tmp_path: Path) -> Iterator[list[tuple[str, str, str]]]:
    """What the notification of docs/how-to/every-night.md has sent so far to a webhook: method, type and body."""
    page = (PROJECT / "docs" / "how-to" / "every-night.md").read_text()
    block, automation = (page.split(f"```{kind}\n")[-1].split("```")[0] for kind in ("python", "yaml prefect"))
    with listening() as webhook:
        (tmp_path / "block.py").write_text(block.replace("https://chat.example/hook", webhook.url("takes")))
        command = [sys.executable, tmp_path / "block.py"]
        done = subprocess.run(command, env=services.environment, capture_output=True, text=True, check=True)
        (tmp_path / "notify.yaml").write_text(automation.replace("BLOCK_ID", done.stdout.strip()))
        services.prefect("automation", "create", "--from-file", str(tmp_path / "notify.yaml"))
        yield webhook.got


def test_a_schedule_of_seconds_fires(
    requested: FlowRun, services: Services, client: SyncPrefectClient, tiny: dict[str, Any], school: School
) -> None:
    """The starter of prefect.yaml with a schedule: a whole night of the date for which its start was scheduled."""
    services.home.night(completed_night(requested)).rename(school.root / "requested")  # the same date runs once more
    plan = yaml.safe_load(DEPLOYMENTS.read_text())
    deployment = next(each for each in plan["deployments"] if each["name"] == "starter")
    deployment |= {
        "name": "seconds",
        "parameters": {"config": tiny},
        "schedules": [{"interval": 20}],
        "work_pool": deployment["work_pool"] | {"job_variables": {"command": TINY_RUN}},
    }
    file = school.root / "seconds.yaml"
    file.write_text(yaml.safe_dump(plan | {"deployments": [deployment]}))
    services.prefect("deploy", "--all", "--prefect-file", str(file))
    first = awaited(lambda: [run for run in runs_of(client, "seconds") if run.start_time], "scheduled run", LIMIT)[0]
    client.pause_deployment(first.deployment_id)
    assert first.auto_scheduled
    run = ended(client, first.id)
    summary = services.home.night(completed_night(run)) / "summary.json"
    assert summary.stat().st_mtime > run.start_time.timestamp()
    assert json.loads(summary.read_text())["decision"] in ("promoted", "kept")


def test_the_owner_is_notified(
    client: SyncPrefectClient, tiny: dict[str, Any], messages: list[tuple[str, str, str]]
) -> None:
    run = ended(client, start(client, config=tiny, date="2026-01-01"))
    message = {"text": f"{run.name}: {run.state.message if run.state else None}"}
    assert awaited(lambda: message in [json.loads(body) for _, _, body in messages], "notification", 60)


@pytest.mark.usefixtures("requested")
def test_everything_ends_with_services_that_are_killed_while_a_night_runs(
    services: Services, client: SyncPrefectClient, tiny: dict[str, Any]
) -> None:
    long = tiny | {"grpo": tiny["grpo"] | {"rounds": 500}}
    start(client, config=long, date="2026-01-02")
    folder = services.home.night("2026-01-02")
    awaited(lambda: [*folder.glob("round-01/manifest.json"), *folder.glob("round-01/*/manifest.json")], "round", LIMIT)
    assert len(processes_of(services.home, 0)) > 5
    assert kill_services(services) == []


def test_an_interrupted_night_is_resumed_by_the_next_services(school: School, tiny: dict[str, Any]) -> None:
    home = school.home("again")
    services = start_services(home)
    with client_of(services.api) as client:
        run = start(client, config=tiny)
        awaited(lambda: list(home.nights.glob("*/round-01/sample/manifest.json")), "round", LIMIT)
        services.process.send_signal(signal.SIGINT)
        assert services.process.wait(60) == 130
    assert processes_of(home, 0) == []
    services = start_services(home)
    with client_of(services.api) as client:
        night = ended(client, run)
        assert f"Resuming the interrupted night {completed_night(night)}." in services.output
        assert night.run_count == 2
    assert kill_services(services) == []
