"""Runs of killed nights are shown as crashed in Prefect and killed in MLflow; nothing else on a server changes."""

import datetime
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from mlflow import MlflowClient
from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterParentFlowRunId
from prefect.client.schemas.objects import StateType
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Crashed, Failed, Running, State

from conf.load import STARTER, load_night
from conf.sections.hours import time_zone
from conf.storage.home import SUMMARY, Home
from conf.storage.locks import hold
from flows.orchestration.reconcile import (
    CRASHED,
    claim_flow_run,
    claim_mlflow_run,
    client_of,
    resume_crashed,
    show_crashed,
    show_killed,
)
from flows.run.context import freeze_config
from tasks.monitoring.tracking import HOME_TAG, Tracking, home_mark
from tests.conf.storage.lock_holder import holder
from tests.waiting import awaited

NIGHT = """
import sys, time
from pathlib import Path
from prefect import flow, task
from prefect.runtime import flow_run
from conf.storage.home import SUMMARY, Home
from flows.run.edges import Edges
from flows.orchestration.reconcile import claim_flow_run
from conf.storage.locks import hold

@task
def sample():
    time.sleep(600)

@flow(name="nightly")
def nightly():
    home = Home(Path(sys.argv[1]))
    with hold(home.root, "the night 2026-11-20"):
        claim_flow_run(home)
        print(flow_run.get_id(), flush=True)
        Edges().run_nested("round", "round-01", sample, Path("none"))

nightly()
"""


@pytest.fixture
def client(prefect_server: None) -> Iterator[SyncPrefectClient]:
    with get_client(sync_client=True) as client:
        yield client


@flow(name="nightly")
def tonight(home: Home) -> str | None:
    with hold(home.root, "the night 2026-11-21"):
        claim_flow_run(home)
    return flow_run.get_id()


@flow(name="another")
def another() -> None:
    """Of another name than a night's."""


def killed_night(home: Home, client: SyncPrefectClient) -> UUID:
    """Return a flow run whose process was killed in a task of a nested run."""
    environment = os.environ | {"PREFECT_API_URL": PREFECT_API_URL.value() or ""}
    command = [sys.executable, "-c", NIGHT, str(home.root)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as night:
        try:
            run = UUID(night.stdout.readline().strip())
            awaited(lambda: states(client, run) == [StateType.RUNNING] * 3, "three running runs", 60)
        finally:
            night.kill()
    return run


def states(client: SyncPrefectClient, run: UUID) -> list[StateType | None]:
    """Return the states of the run's tasks, of its nested runs, and of their tasks."""
    tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run])))
    children = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run]))
    nested = client.read_flow_runs(flow_run_filter=children)
    inner = [state for each in nested for state in states(client, each.id)]
    return [*(each.state_type for each in (*tasks, *nested)), *inner]


@pytest.mark.slow
def test_a_killed_night_is_shown_as_crashed_when_the_next_begins(tmp_path: Path, client: SyncPrefectClient) -> None:
    home = Home(tmp_path / "school")
    dead = killed_night(home, client)
    elsewhere = client.create_flow_run(tonight, tags=["home-elsewhere"], state=Running())
    other_flow = client.create_flow_run(another, tags=[home_mark(home)], state=Running())
    untagged = client.create_flow_run(tonight, state=Running())
    assert client.read_flow_run(dead).state_type == StateType.RUNNING
    new = tonight(home)
    state = client.read_flow_run(dead).state
    assert (state.type, state.message) == (StateType.CRASHED, CRASHED)
    assert states(client, dead) == [StateType.CRASHED] * 3
    for other in (elsewhere, other_flow, untagged):
        assert client.read_flow_run(other.id).state_type == StateType.RUNNING
    run = client.read_flow_run(UUID(new))
    assert (run.state_type, run.tags) == (StateType.COMPLETED, [home_mark(home)])


def test_the_pages_of_a_home_show_its_dead_nights(tmp_path: Path, client: SyncPrefectClient) -> None:
    """Tagged or not, because the database is the home's own; but not while a night runs there."""
    api = PREFECT_API_URL.value() or ""
    dead = client.create_flow_run(tonight, state=Running())
    with holder(tmp_path):
        show_crashed(Home(tmp_path), api)
    assert client.read_flow_run(dead.id).state_type == StateType.RUNNING
    show_crashed(Home(tmp_path), api)
    assert client.read_flow_run(dead.id).state_type == StateType.CRASHED


def test_a_finished_night_that_was_killed_is_shown_as_completed(tmp_path: Path, client: SyncPrefectClient) -> None:
    """Its summary is written before its process ends. A run's name may be anything."""
    home = Home(tmp_path / "school")
    finish(home, "2026-11-20")
    names = ("starter 2026-11-20", "starter 2026-11-19", "../nights/2026-11-20")
    runs = [client.create_flow_run(tonight, name=name, tags=[home_mark(home)], state=Running()).id for name in names]
    tonight(home)
    shown = [client.read_flow_run(run).state_type for run in runs]
    assert shown == [StateType.COMPLETED, StateType.CRASHED, StateType.CRASHED]


def finish(home: Home, date: str) -> None:
    home.night(date).mkdir(parents=True, exist_ok=True)
    (home.night(date) / SUMMARY).write_text("{}")


def test_a_workers_crash_is_resumed_until_noon(
    client: SyncPrefectClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older, failed or cancelled one is not, nor a run of the command, which its owner resumes."""
    home, eastern_hours = Home(tmp_path), ["deadline=06:30", "deadline_time_zone=Pacific/Kiritimati"]
    freeze_config(home.night("2026-11-21"), load_night(STARTER, eastern_hours), fresh=False)
    deployment = client.create_deployment(client.create_flow(tonight), "goes-on")

    def run(name: str, state: State) -> UUID:
        created = client.create_flow_run_from_deployment(deployment, name=f"starter {name}")
        client.set_flow_run_state(created.id, state, force=True)
        return created.id

    mine = run("2026-11-20", Crashed())
    eastern = run("2026-11-21", Crashed())  # 14 hours ahead of UTC
    others = [run("2026-11-19", Crashed()), run("2026-11-20", Failed()), run("2026-11-20", Cancelled())]
    command = client.create_flow_run(tonight, name="starter 2026-11-20", state=Crashed()).id
    hour = 12

    def clocks(zone: str | None) -> datetime.datetime:
        return datetime.datetime(2026, 11, 21, hour, tzinfo=datetime.UTC).astimezone(time_zone(zone or "Etc/UTC"))

    monkeypatch.setattr("flows.orchestration.reconcile.clocks_in", clocks)
    assert resume_crashed(client, home) == ["2026-11-21"]  # there it is two in the morning
    hour = 3
    finish(home, "2026-11-20")  # by hand
    assert resume_crashed(client, home) == []
    shutil.rmtree(home.night("2026-11-20"))
    assert resume_crashed(client, home) == ["2026-11-20"]
    assert resume_crashed(client, home) == []
    for id in (mine, eastern):
        state = client.read_flow_run(id).state
        assert (state.type, state.name) == (StateType.SCHEDULED, "AwaitingRetry")
    for id in (*others, command):
        assert client.read_flow_run(id).state_type != StateType.SCHEDULED


def test_a_server_that_does_not_answer_is_only_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
        show_crashed(Home(tmp_path), "http://127.0.0.1:9/api")
        with client_of("http://127.0.0.1:9/api") as client:
            assert resume_crashed(client, Home(tmp_path)) == []
    assert "runs that died could not be shown as crashed" in caplog.text


def test_each_home_has_its_own_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = home_mark(Home(tmp_path / "one"))
    assert one == home_mark(Home(tmp_path / "one")) != home_mark(Home(tmp_path / "two"))
    assert "one" not in one  # a path is private
    monkeypatch.setattr("socket.gethostname", lambda: "another-machine")
    assert one != home_mark(Home(tmp_path / "one"))


def test_a_killed_night_is_killed_in_mlflow_too_until_it_is_resumed(home_with_mlflow: Callable[[str], Home]) -> None:
    home, config = home_with_mlflow("school"), load_night(STARTER)
    tracking, mine = Tracking(home, config), home_mark(home)
    runs = {}
    for date, mark in (("2026-11-18", mine), ("2026-11-19", "home-elsewhere"), ("2026-11-20", mine)):
        home.night(date).mkdir(parents=True)
        tracking.open_run(home.night(date), config, {HOME_TAG: mark})
        runs[date] = tracking.run_id
    by_hand = tracking.client.create_run(tracking.experiment_id).info.run_id
    client = MlflowClient(tracking_uri=home.database)

    def statuses() -> list[str]:
        return [client.get_run(run).info.status for run in (*runs.values(), by_hand)]

    claim_mlflow_run(home, tracking.client, tracking.experiment_id, runs["2026-11-20"])
    assert statuses() == ["KILLED", "RUNNING", "RUNNING", "RUNNING"]
    tracking.open_run(home.night("2026-11-18"), config, {})
    assert tracking.run_id == runs["2026-11-18"]
    assert statuses() == ["RUNNING", "RUNNING", "RUNNING", "RUNNING"]
    with holder(home.root):
        show_killed(home)
    assert statuses() == ["RUNNING", "RUNNING", "RUNNING", "RUNNING"]
    finish(home, "2026-11-20")
    show_killed(home)
    assert statuses() == ["KILLED", "KILLED", "FINISHED", "RUNNING"]
    finish(home, "2026-11-18")
    tracking.open_run(home.night("2026-11-18"), config, {})
    claim_mlflow_run(home, tracking.client, tracking.experiment_id, "another")
    assert statuses() == ["FINISHED", "KILLED", "FINISHED", "RUNNING"]
    show_killed(Home(home.root / "nowhere"))
    assert not (home.root / "nowhere").exists()
