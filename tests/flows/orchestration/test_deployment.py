"""What is deployed: the deployments of prefect.yaml, and the values that its build step adds."""

import datetime
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prefect.cli import app
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.settings import PREFECT_API_URL
from prefect.states import Scheduled
from prefect.workers.process import ProcessWorker

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.sections.hours import machine_zone
from conf.storage.home import Home
from flows.orchestration.deployment import night_values
from flows.orchestration.worker import DEPLOY, POOL, PROJECT, environment_of, next_night


def test_the_parameter_gives_the_configuration_back() -> None:
    for file in STARTER.parent.glob("*.yaml"):
        values = night_values(str(file))
        assert NightConfig.model_validate(values["config"]) == load_night(file)
        assert "keep_nights" not in values["config"]  # a default, which the form shows
        assert values["command"] == f"{sys.executable} -m flows.orchestration.worker_run"


def test_the_time_zone_is_the_configurations_or_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "Asia/Tokyo")
    assert night_values(str(STARTER))["time_zone"] == "Asia/Tokyo"
    file = tmp_path / "night.yaml"
    file.write_text(f"{STARTER.read_text()}\ndeadline_time_zone: Europe/Berlin\n")
    assert night_values(str(file))["time_zone"] == "Europe/Berlin"


def test_nothing_beside_a_deployed_flow_hides_a_package() -> None:
    """Prefect puts a flow's folder first on the import path, where a `models.py` beside it would hide our `models`."""
    plan = yaml.safe_load((PROJECT / "prefect.yaml").read_text())
    files = {PROJECT / deployment["entrypoint"].partition(":")[0] for deployment in plan["deployments"]}
    assert len(files) == 2
    packages = {folder.parent.name for folder in PROJECT.glob("*/__init__.py")}
    assert {"models", "tasks"} <= packages
    assert not packages & {each.stem for file in files for each in file.parent.glob("*") if each != file.parent}


@pytest.fixture(scope="module")
def deployed(prefect_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncPrefectClient]:
    """A client of a server to which prefect.yaml has been deployed, by the command in this process."""
    environment = environment_of(Home(tmp_path_factory.mktemp("school")), PREFECT_API_URL.value() or "", None)
    with get_client(sync_client=True) as client, pytest.MonkeyPatch.context() as patch:
        template = ProcessWorker.get_default_base_job_template()
        client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", DEPLOY[2:])
        patch.chdir(PROJECT)
        with pytest.raises(SystemExit) as ended:
            app()
        assert ended.value.code in (0, None)
        yield client


@pytest.mark.slow
def test_the_deployments_are_those_of_prefect_yaml_with_their_configurations(deployed: SyncPrefectClient) -> None:
    in_the_pool = [each for each in deployed.read_deployments() if each.work_pool_name == POOL]
    deployments = {deployment.name: deployment for deployment in in_the_pool}
    assert deployments.keys() == {"nightly", "starter", "exam"}
    assert NightConfig.model_validate(deployments["starter"].parameters["config"]) == load_night(STARTER)
    assert deployments["nightly"].parameters == deployments["exam"].parameters == {}  # the home's own configuration
    for deployment in deployments.values():
        assert deployment.global_concurrency_limit is None
        (step,) = deployment.pull_steps
        assert step == {"prefect.deployments.steps.set_working_directory": {"directory": str(PROJECT)}}
    schedules = {name: [each.schedule for each in deployment.schedules] for name, deployment in deployments.items()}
    assert schedules["starter"] == schedules["exam"] == []
    assert [(each.cron, each.timezone) for each in schedules["nightly"]] == [("0 1 * * *", machine_zone())]


@pytest.mark.slow
def test_the_next_night_is_the_first_one_to_come(deployed: SyncPrefectClient) -> None:
    nightly = deployed.read_deployment_by_name("nightly/nightly").id
    now = datetime.datetime.now().astimezone()
    first = now + datetime.timedelta(seconds=40)  # whatever the schedule has brought in between is of the same minute
    for moment in (first, now + datetime.timedelta(minutes=20), now - datetime.timedelta(days=1)):
        deployed.create_flow_run_from_deployment(nightly, state=Scheduled(scheduled_time=moment))
    assert next_night(deployed) == f"{first:%Y-%m-%d %H:%M %Z}"
