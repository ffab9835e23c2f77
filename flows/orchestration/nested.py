"""Nested flow runs: a round, or the day's lessons, as one node of the night's graph that opens into its own."""

import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import httpx
from prefect import Flow
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

log = logging.getLogger("nightschool")

_lost: set[UUID] = set()  # the flow runs whose server stopped answering


class NestedRun:
    """The result of a nested run, by whose identity Prefect draws edges from the run to what waits for it."""


def run_nested(name: str, label: str, body: Callable[[], None], wait_for: Sequence[Any] = ()) -> NestedRun | None:
    """Run `body` as a flow run within the current one, or plainly outside of any flow.

    `wait_for`: results of the runs that come before it. Returns None where the run could not be recorded: a server that
    does not answer costs a night its picture, and once the seconds until Prefect gives up. Raises what `body` raises.
    """
    context = FlowRunContext.get()
    night = context.flow_run.id if context and context.flow_run else None
    if night is None or night in _lost:
        body()
        return None
    raised: list[Exception | None] = []

    def run() -> NestedRun:
        try:
            body()
        except Exception as error:
            raised.append(error)
            raise
        raised.append(None)
        return NestedRun()

    # A heartbeat would take most of a run's price; the night's own is enough.
    nested: Any = Flow(run, name=name, flow_run_name=label, validate_parameters=False, persist_result=False)
    try:
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            return nested(wait_for=wait_for)
    except (httpx.HTTPError, PrefectHTTPStatusError) as error:
        log.warning("Prefect does not show %s and later rounds as nested runs: %s", label, error)
        _lost.add(night)
        if not raised:
            body()
        elif raised[0] is not None:
            raise raised[0] from None
        return None
