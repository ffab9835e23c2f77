"""Runs whose process died without a word are shown as crashed, in Prefect and in MLflow, not as running for ever; where
their night was finished, as that.

A night does so at its start, when it holds the home's lock: whatever else of this home is said to run is dead. A server
may be shared, so only runs that carry the home's mark are touched. `nightschool ui` and `services` do the same to the
home's own databases, where every night is this home's; `services` then has a worker go on with last night's.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from mlflow import MlflowClient
from mlflow.entities import Run
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.states import AwaitingRetry, Completed, Crashed

from conf.sections.hours import clocks_in
from conf.storage.home import SUMMARY, Home
from conf.storage.locks import holder
from flows.run.dates import date_of_night
from tasks.tracking import HOME_TAG, home_mark

log = logging.getLogger("nightschool")

NIGHTLY = "nightly"  # the flow's name
NIGHT_RUN = "attributes.status = 'RUNNING' and tags.`mlflow.source.name` = 'nightschool night'"
UNDER_WAY = [StateType.RUNNING, StateType.PENDING]
MESSAGE = "The night's process ended without a word (killed, out of memory, or the machine went down)."
FINISHED = "The night is finished; its process ended before it could say so here."


def claim_flow_run(home: Home) -> None:
    """Marks tonight's flow run as this home's, and shows as crashed what else has the mark and is said to run.

    To be called under the home's lock.
    """
    own, mark = flow_run.get_id(), home_mark(home)
    with _only_books(), get_client(sync_client=True) as client:
        if own is not None:
            client.update_flow_run(UUID(own), tags=sorted({*flow_run.get_tags(), mark}))
        for run in _flow_runs(client, mark):
            if str(run.id) != own:
                _end(client, run, home)


def claim_mlflow_run(home: Home, client: MlflowClient, experiment_id: str, run_id: str) -> None:
    """The same in MLflow, where the runs are tagged already: they end as killed, or as finished."""
    with _only_books():
        for run in client.search_runs([experiment_id], f"{NIGHT_RUN} and tags.`{HOME_TAG}` = '{home_mark(home)}'"):
            if run.info.run_id != run_id:
                _terminate(client, run, home)


def show_crashed(home: Home, api: str, key: str | None = None) -> None:
    """Shows the dead nights in the home's own Prefect database as crashed.

    `api`: where it is served; `key`: what that asks for, as user:password.
    """
    with _only_books(), client_of(api, key) as client:
        found = _flow_runs(client, None)
        if holder(home.root) is None:  # asked afterwards: a night holds the lock before its run begins
            for run in found:
                _end(client, run, home)


def show_killed(home: Home) -> None:
    """Shows the dead nights in the home's own MLflow database as killed."""
    if not home.database_file.exists():
        return
    with _only_books():
        client = MlflowClient(tracking_uri=home.database)
        experiments = [experiment.experiment_id for experiment in client.search_experiments()]
        found: list[Run] = list(client.search_runs(experiments, NIGHT_RUN))
        if holder(home.root) is None:
            for run in found:
                _terminate(client, run, home)


def go_on(client: SyncPrefectClient) -> list[str]:
    """Has a worker go on with the scheduled night that crashed, until noon: later it would run into the day.

    That is what *Retry* on its page does. Returns the names (dates) of the runs; they are tried in the order of their
    start, and one that finds its night finished ends at once.
    """
    with _only_books():
        crashed = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=[NIGHTLY])),
            flow_run_filter=FlowRunFilter(
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CRASHED])),
                deployment_id=FlowRunFilterDeploymentId(is_null_=False),
            ),
            sort=FlowRunSort.START_TIME_DESC,
            limit=10,
        )
        tonights = [run for run in crashed if run.name == _tonight(run)]
        for run in tonights:
            client.set_flow_run_state(run.id, AwaitingRetry(message="The services are back."), force=True)
        return [run.name for run in tonights]
    return []


def _tonight(run: FlowRun) -> str:
    """The date that a night of the run's configuration has which begins now."""
    config = run.parameters.get("config") or {}
    return date_of_night(clocks_in(config.get("deadline_time_zone")))


@contextmanager
def client_of(api: str, key: str | None = None) -> Iterator[SyncPrefectClient]:
    """A client of the Prefect server at `api`; `key`: what that asks for, as user:password."""
    settings: dict[Any, str] = {PREFECT_API_URL: api, **({PREFECT_API_AUTH_STRING: key} if key else {})}
    with temporary_settings(settings), get_client(sync_client=True) as client:
        yield client


def _flow_runs(client: SyncPrefectClient, mark: str | None) -> list[FlowRun]:
    """The nights that are said to be under way, of one home or of all."""
    return client.read_flow_runs(
        flow_filter=FlowFilter(name=FlowFilterName(any_=[NIGHTLY])),
        flow_run_filter=FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=UNDER_WAY)),
            tags=FlowRunFilterTags(all_=[mark]) if mark else None,
        ),
    )


def _end(client: SyncPrefectClient, run: FlowRun, home: Home) -> None:
    """Shows a run as crashed, or as completed where its night is finished all the same.

    The run's tasks first: one that is interrupted here is found again.
    """
    state = Completed(message=FINISHED) if _is_finished(home, run.name) else Crashed(message=MESSAGE)
    tasks = client.read_task_runs(
        flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])),
        task_run_filter=TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=UNDER_WAY), name=None)),
    )
    for task in tasks:
        client.set_task_run_state(task.id, state.fresh_copy(), force=True)
    client.set_flow_run_state(run.id, state, force=True)
    log.info("the run %s of an earlier start is shown as %s", run.name, state.type.value.lower())


def _terminate(client: MlflowClient, run: Run, home: Home) -> None:
    finished = _is_finished(home, run.data.tags.get("night", ""))
    client.set_terminated(run.info.run_id, "FINISHED" if finished else "KILLED")


def _is_finished(home: Home, date: str) -> bool:
    """Whether the night that a run is named after came to its end: killed later, it only could not say so."""
    return date in [summary.parent.name for summary in home.nights.glob(f"????-??-??/{SUMMARY}")]


@contextmanager
def _only_books() -> Iterator[None]:
    """Whatever a server comes up with: that old runs look alive is worth a warning, and no night."""
    try:
        yield
    except Exception as error:
        log.warning("runs that died could not be shown as crashed: %s", error)
