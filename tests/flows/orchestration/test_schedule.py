"""The schedule, whole: `nightschool services` with its real server and worker; what they deploy, run, refuse, tell."""

import datetime
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest
import yaml
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.states import Scheduled

from conf.load import load_night
from conf.schema import NightConfig
from conf.sections.hours import machine_zone
from conf.storage.home import Home
from flows.orchestration.reconcile import client_of
from flows.orchestration.worker import DEPLOYMENTS, PROJECT, environment_of
from flows.run.dates import date_of_night
from flows.web.address import free_port
from tests.chaos.school import NAME, STARTER, School, open_school, processes_of
from tests.flows.planted import owners

pytestmark = pytest.mark.timeout(1200)

UTC = datetime.UTC
LIMIT = 600  # seconds for a run of a worker
TINY_RUN = shlex.join([sys.executable, "-m", "tests.chaos.worker_run"])


@dataclass
class Services:
    """`nightschool services` while it runs, and what it said until it was ready."""

    process: subprocess.Popen[str]
    said: list[str]
    port: int
    home: Home

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def environment(self) -> dict[str, str]:
        return environment_of(self.home, self.api, None) | {"PYTHONPATH": str(PROJECT)}

    def prefect(self, *arguments: str) -> str:
        """What a command of Prefect's prints."""
        command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
        done = subprocess.run(command, env=self.environment, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def start_services(home: Home) -> Services:
    """Starts them on free ports, and waits until they are ready."""
    prefect, mlflow = free_port(), free_port()
    environment = os.environ | {"NIGHTSCHOOL_HOME": str(home.root), "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    environment["HOME"] = str(owners(home.root))
    command = [sys.executable, "-m", "flows", "services", f"--prefect-port={prefect}", f"--mlflow-port={mlflow}"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line.rstrip())
        if line.startswith("Ctrl-C"):
            return Services(process, said, prefect, home)
    raise AssertionError("\n".join([*said, *(log.read_text() for log in home.root.glob("prefect/*.log"))]))


def kill_services(services: Services) -> list[str]:
    """Kills them outright, as the kernel does where memory is short. Returns what still runs seconds later."""
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
    """The configuration of a tiny night, as a parameter."""
    return load_night(STARTER, [f"name={NAME}", *school.settings]).model_dump(mode="json", exclude_unset=True)


def ended(client: SyncPrefectClient, run: UUID) -> FlowRun:
    """The run, once it is over."""
    return awaited(lambda: over(client.read_flow_run(run)), f"the end of run {run}")


def over(run: FlowRun) -> FlowRun | None:
    return run if run.state is not None and run.state.is_final() else None


def awaited(look: Callable[[], Any], what: str, limit: float = LIMIT) -> Any:
    """What `look` finds, as soon as it is something."""
    until = time.monotonic() + limit
    while not (found := look()):
        assert time.monotonic() < until, f"no {what} within {limit} s"
        time.sleep(0.3)
    return found


def runs_of(client: SyncPrefectClient, deployment: str) -> list[FlowRun]:
    return client.read_flow_runs(deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[deployment])))


def start(client: SyncPrefectClient, deployment: DeploymentResponse, *, minutes: float = 0, **parameters: Any) -> UUID:
    """Has the worker start a run that was to begin so many minutes ago, with the tiny engine."""
    moment = datetime.datetime.now(UTC) - datetime.timedelta(minutes=minutes)
    return client.create_flow_run_from_deployment(
        deployment.id,
        parameters=parameters,
        state=Scheduled(scheduled_time=moment),
        job_variables={"command": TINY_RUN},
    ).id


# --- what is deployed


def test_the_deployments_are_those_of_prefect_yaml_with_their_configurations(client: SyncPrefectClient) -> None:
    found = {deployment.name: deployment for deployment in client.read_deployments()}
    assert found.keys() == {"nightly", "starter", "exam"}
    for name, file in {"nightly": "nightly", "starter": "starter", "exam": "nightly"}.items():
        config = load_night(PROJECT / "conf" / f"{file}.yaml")
        assert NightConfig.model_validate(found[name].parameters["config"]) == config, name
        assert found[name].global_concurrency_limit is None
        assert found[name].pull_steps == [
            {"prefect.deployments.steps.set_working_directory": {"directory": str(PROJECT)}}
        ]
    schedules = {name: [schedule.schedule for schedule in one.schedules] for name, one in found.items()}
    assert schedules["starter"] == schedules["exam"] == []
    assert [(one.cron, one.timezone) for one in schedules["nightly"]] == [("0 1 * * *", machine_zone())]


def test_the_next_night_is_told_and_is_the_next_one_oclock(services: Services) -> None:
    now = datetime.datetime.now().astimezone()
    moment = now.replace(hour=1, minute=0) + datetime.timedelta(days=now.hour >= 1)
    assert f"Next night: {moment:%Y-%m-%d %H:%M %Z}" in services.said


def test_the_command_that_tells_the_schedule(services: Services) -> None:
    """As docs/schedule.md has it."""
    assert "0 1 * * *" in services.prefect("deployment", "schedule", "ls", "nightly/nightly")


def test_a_parameter_that_cannot_be_is_refused_at_once(services: Services) -> None:
    command = [sys.executable, "-m", "prefect", "deployment", "run", "nightly/starter", "-p", "date=[2]"]
    done = subprocess.run(command, env=services.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "date" in done.stdout + done.stderr


# --- what runs


class Inbox(BaseHTTPRequestHandler):
    """A chat's webhook, as far as a notification goes."""

    def do_POST(self) -> None:
        self.server.letters.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None: ...


@pytest.fixture(scope="module")
def letters() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a webhook on loopback, and what it is sent."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Inbox) as server:
        server.letters = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", server.letters  # type: ignore[attr-defined]
        server.shutdown()


@pytest.fixture(scope="module")
def notified(
    services: Services, letters: tuple[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The notification of docs/watching.md, to this webhook; what it sent so far."""
    url, sent = letters
    page = (PROJECT / "docs" / "watching.md").read_text()
    block, automation = (page.split(f"```{kind}\n")[-1].split("```")[0] for kind in ("python", "yaml prefect"))
    folder = tmp_path_factory.mktemp("notification")
    (folder / "block.py").write_text(block.replace("https://chat.example/hook", url))
    done = subprocess.run(
        [sys.executable, folder / "block.py"], env=services.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (folder / "notify.yaml").write_text(automation.replace("BLOCK_ID", done.stdout.strip()))
    services.prefect("automation", "create", "--from-file", str(folder / "notify.yaml"))
    return sent


@pytest.fixture(scope="module")
def asked(
    services: Services, client: SyncPrefectClient, tiny: dict[str, Any], notified: list[dict[str, Any]]
) -> FlowRun:
    """The run of a tiny night that somebody asked the deployment `starter` for, once it is over."""
    parameters, variable = json.dumps({"config": tiny}), f"command={TINY_RUN}"
    services.prefect("deployment", "run", "nightly/starter", "--params", parameters, "--job-variable", variable)
    return ended(client, runs_of(client, "starter")[0].id)


def test_a_night_that_somebody_asks_for_completes(asked: FlowRun, services: Services) -> None:
    assert asked.state is not None
    assert asked.state.type == StateType.COMPLETED, asked.state.message
    assert asked.name == date_of_night(asked.expected_start_time.astimezone())
    folder = services.home.night(asked.name)
    assert json.loads((folder / "summary.json").read_text())["decision"] in ("promoted", "kept")
    assert (folder / "report.html").exists()
    assert load_night(folder / "config.yaml").name == NAME


@pytest.mark.usefixtures("asked")
def test_what_prefect_writes_lies_under_the_home(services: Services) -> None:
    assert list((services.home.root / "prefect" / "storage").iterdir())
    assert list((owners(services.home.root) / ".prefect").glob("*")) == []


def test_the_owner_is_notified_of_it_alarms_first(asked: FlowRun, notified: list[dict[str, Any]]) -> None:
    letter = awaited(lambda: next(iter(notified), None), "notification", 60)
    assert letter == {"text": f"{asked.name}: {asked.state.message if asked.state else None}"}


def test_a_schedule_of_seconds_fires(
    asked: FlowRun, services: Services, client: SyncPrefectClient, tiny: dict[str, Any], school: School
) -> None:
    """Of prefect.yaml's starter, given a schedule: a whole night of the date that its start was scheduled for."""
    services.home.night(asked.name).rename(school.root / "asked")  # the night of today is to come once more
    plan = yaml.safe_load(DEPLOYMENTS.read_text())
    deployment = next(one for one in plan["deployments"] if one["name"] == "starter")
    deployment |= {
        "name": "seconds",
        "parameters": {"config": tiny},
        "schedules": [{"interval": 20}],
        "work_pool": deployment["work_pool"] | {"job_variables": {"command": TINY_RUN}},
    }
    file = school.root / "seconds.yaml"
    file.write_text(yaml.safe_dump(plan | {"deployments": [deployment]}))
    services.prefect("deploy", "--all", "--prefect-file", str(file))
    first = awaited(lambda: [run for run in runs_of(client, "seconds") if run.start_time], "run of the schedule")[0]
    client.pause_deployment(first.deployment_id)
    assert first.auto_scheduled
    run = ended(client, first.id)
    assert run.state is not None
    date = date_of_night(run.expected_start_time.astimezone())
    assert (run.name, run.state.type) == (date, StateType.COMPLETED), run.state.message
    summary = services.home.night(date) / "summary.json"
    assert run.start_time is not None
    assert summary.stat().st_mtime > run.start_time.timestamp()
    assert json.loads(summary.read_text())["decision"] in ("promoted", "kept")


def test_a_start_hours_late_is_refused(services: Services, client: SyncPrefectClient, tiny: dict[str, Any]) -> None:
    """The machine slept at one o'clock."""
    deployment = client.read_deployment_by_name("nightly/nightly")
    before = sorted(services.home.nights.glob("*"))
    late = ended(client, start(client, deployment, minutes=180, config=tiny))
    assert late.state is not None
    assert (late.state.type, late.state.name) == (StateType.COMPLETED, "Refused")
    assert "started 18" in str(late.state.message)
    assert sorted(services.home.nights.glob("*")) == before


def test_a_checkpoint_that_somebody_names_sits_the_exam(
    services: Services, client: SyncPrefectClient, tiny: dict[str, Any], school: School
) -> None:
    rows = school.root / "rows.jsonl"
    given = {"checkpoint": str(school.root / "student"), "config": json.dumps(tiny), "rows": str(rows)}
    parameters = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
    services.prefect("deployment", "run", "exam/exam", *parameters, "--job-variable", f"command={TINY_RUN}")
    run = ended(client, runs_of(client, "exam")[0].id)
    assert run.state is not None
    assert (run.name, run.state.type) == (f"exam of {given['checkpoint']}", StateType.COMPLETED), run.state.message
    assert {json.loads(line)["checkpoint"] for line in rows.read_text().splitlines()} == {given["checkpoint"]}
    told = {found.key: str(found.data) for found in client.read_latest_artifacts()}
    assert re.search(r"gsm8k .* n = 16 ", told["exam"])


def test_everything_ends_with_services_that_are_killed_while_a_night_runs(
    asked: FlowRun, services: Services, client: SyncPrefectClient, tiny: dict[str, Any]
) -> None:
    long = tiny | {"grpo": tiny["grpo"] | {"rounds": 500}}
    start(client, client.read_deployment_by_name("nightly/starter"), config=long, date="2026-01-02")
    folder = services.home.night("2026-01-02")
    awaited(
        lambda: list(folder.glob("round-01/manifest.json")) or list(folder.glob("round-01/*/manifest.json")), "round"
    )
    assert len(processes_of(services.home, 0)) > 5
    assert kill_services(services) == []


@pytest.mark.full
def test_an_interrupted_night_goes_on_when_the_services_are_back(school: School, tiny: dict[str, Any]) -> None:
    home = school.home("again")
    services = start_services(home)
    with client_of(services.api) as client:
        run = start(client, client.read_deployment_by_name("nightly/starter"), config=tiny)
        awaited(lambda: list(home.nights.glob("*/round-01/sample/manifest.json")), "round")
        services.process.send_signal(signal.SIGINT)
        assert services.process.wait(60) == 130
    assert processes_of(home, 0) == []
    services = start_services(home)
    with client_of(services.api) as client:
        assert f"The night {client.read_flow_run(run).name}, which was interrupted, goes on." in services.said
        night = ended(client, run)
        assert night.state is not None
        assert (night.state.type, night.run_count) == (StateType.COMPLETED, 2), night.state.message
    assert kill_services(services) == []
