"""Marks the runs of dead processes as crashed in Prefect and killed in MLflow, or as completed if the night finished.

A night does this at its start. It then holds the home's lock, so no other night of this home is running. Several homes
may share a server, so a night changes only runs with its home's tag. `nightschool ui` and `services` do the same in the
home's own databases, where all runs belong to the home. `services` then has its worker resume a crashed night.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from mlflow import MlflowClient
from mlflow.entities import Run
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.states import AwaitingRetry, Completed, Crashed

from conf.load import load_night, own_file
from conf.sections.hours import clocks_in
from conf.storage.home import NIGHTS, SUMMARY, Home
from conf.storage.locks import holder
from conf.storage.log import log
from flows.run.dates import date_of_night
from tasks.monitoring.tracking import HOME_TAG, NIGHT_RUNS, home_mark

NIGHTLY = FlowFilter.model_validate({"name": {"any_": ["nightly"]}})
RUNNING = f"attributes.status = 'RUNNING' and {NIGHT_RUNS}"
ACTIVE = {"type": {"any_": [StateType.RUNNING, StateType.PENDING]}}
CRASHED = "The night's process exited unexpectedly (killed, out of memory, or the machine went down)."
FINISHED = "The night finished, but its process ended before it could say so here."


def claim_flow_run(home: Home) -> None:
    """Give tonight's flow run the home's tag, and end the home's other active runs. The caller must hold its lock."""
    tonight, tag = flow_run.get_id(), home_mark(home)
    with _warn_only(), get_client(sync_client=True) as client:
        if tonight is not None:
            client.update_flow_run(UUID(tonight), tags=sorted({*flow_run.get_tags(), tag}))
        for run in _active_runs(client, tags={"all_": [tag]}):
            if str(run.id) != tonight:
                _end(client, run, home)


def claim_mlflow_run(home: Home, client: MlflowClient, experiment_id: str, run_id: str) -> None:
    """End this home's active MLflow runs other than `run_id`. The caller must hold the home's lock."""
    with _warn_only():
        runs = client.search_runs([experiment_id], f"{RUNNING} and tags.`{HOME_TAG}` = '{home_mark(home)}'")
        _terminate(client, (run for run in runs if run.info.run_id != run_id), home)


def show_crashed(home: Home, api: str, key: str | None = None) -> None:
    """Mark the runs of dead night processes as crashed in the home's Prefect server (`api`, `key`: see `client_of`)."""
    with _warn_only(), client_of(api, key) as client:
        runs = _active_runs(client)
        if holder(home.root) is None:  # checked after the query: a night takes the lock before its run starts
            for run in runs:
                _end(client, run, home)


def show_killed(home: Home) -> None:
    """Mark the runs of dead night processes as killed in the home's MLflow database."""
    if not home.database_file.exists():
        return
    with _warn_only():
        client = MlflowClient(tracking_uri=home.database)
        experiments = [experiment.experiment_id for experiment in client.search_experiments()]
        runs = client.search_runs(experiments, RUNNING)
        if holder(home.root) is None:
            _terminate(client, runs, home)


def resume_crashed(client: SyncPrefectClient, home: Home) -> list[str]:
    """Let a worker resume tonight's scheduled runs if they crashed, as Prefect's *Retry* does. Return their dates.

    From noon on, last night's runs are not resumed, because they would run into the day.
    """
    with _warn_only():
        scheduled = {"state": {"type": {"any_": [StateType.CRASHED]}}, "deployment_id": {"is_null_": False}}
        crashed = client.read_flow_runs(
            flow_filter=NIGHTLY,
            flow_run_filter=FlowRunFilter.model_validate(scheduled),
            sort=FlowRunSort.START_TIME_DESC,
            limit=10,
        )
        crashed = [run for run in crashed if not _is_finished(home, _date(run))]  # e.g. by hand
        tonights = [run for run in crashed if _date(run) == _tonight(run, home)]
        for run in tonights:
            client.set_flow_run_state(run.id, AwaitingRetry(message="The services are back."), force=True)
        return [_date(run) for run in tonights]
    return []


@contextmanager
def client_of(api: str, key: str | None = None) -> Iterator[SyncPrefectClient]:
    """Yield a client of the Prefect server at the API URL `api`. `key`: user:password, or None without a password."""
    settings: dict[Any, str] = {PREFECT_API_URL: api, **({PREFECT_API_AUTH_STRING: key} if key else {})}
    with temporary_settings(settings), get_client(sync_client=True) as client:
        yield client


def _date(run: FlowRun) -> str:
    """Return the date of a run's night, which is the last word of the run's name."""
    return run.name.rpartition(" ")[2]


def _tonight(run: FlowRun, home: Home) -> str:
    """Return the date of the night that is on now, by the time zone of the run's night."""
    config = load_night(own_file(home, _date(run)))
    return date_of_night(clocks_in(config.deadline_time_zone))


def _active_runs(client: SyncPrefectClient, **filters: Any) -> list[FlowRun]:
    selected = FlowRunFilter.model_validate({"state": ACTIVE, **filters})
    return client.read_flow_runs(flow_filter=NIGHTLY, flow_run_filter=selected)


def _end(client: SyncPrefectClient, run: FlowRun, home: Home) -> None:
    state = Completed(message=FINISHED) if _is_finished(home, _date(run)) else Crashed(message=CRASHED)
    _end_with_children(client, run.id, state)
    log.info("the run %s of an earlier start is shown as %s", run.name, state.type.value.lower())


def _end_with_children(client: SyncPrefectClient, run: UUID, state: State[Any]) -> None:
    """Set the state of a run's active nested runs and tasks, then the state of the run itself.

    Because of this order, a later call can complete what an interrupted call has left undone.
    """
    children = FlowRunFilter.model_validate({"state": ACTIVE, "parent_flow_run_id": {"any_": [run]}})
    for nested in client.read_flow_runs(flow_run_filter=children):
        _end_with_children(client, nested.id, state)
    itself = FlowRunFilter.model_validate({"id": {"any_": [run]}})
    active = TaskRunFilter.model_validate({"state": ACTIVE | {"name": None}})
    for task in client.read_task_runs(flow_run_filter=itself, task_run_filter=active):
        client.set_task_run_state(task.id, state.fresh_copy(), force=True)
    client.set_flow_run_state(run, state.fresh_copy(), force=True)


def _terminate(client: MlflowClient, runs: Iterable[Run], home: Home) -> None:
    for run in runs:
        finished = _is_finished(home, run.data.tags.get("night", ""))
        client.set_terminated(run.info.run_id, "FINISHED" if finished else "KILLED")


def _is_finished(home: Home, date: str) -> bool:
    """Return whether the night of `date` has a summary. `date` may be any text, so it is never used as a path."""
    return date in [summary.parent.name for summary in home.nights.glob(f"{NIGHTS}/{SUMMARY}")]


@contextmanager
def _warn_only() -> Iterator[None]:
    """Log any server failure as a warning. No night should fail because old runs are still shown as running."""
    try:
        yield
    except Exception as error:
        log.warning("runs that died could not be shown as crashed: %s", error)
