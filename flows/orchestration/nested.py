"""Nested flow runs: a round, or the day's lessons, as one node of the night's graph that opens into its own."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from prefect import Flow
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectHTTPStatusError

log = logging.getLogger("nightschool")


class NestedRun:
    """The result of a nested run, by whose identity Prefect draws edges from the run to what waits for it."""


def run_nested(name: str, label: str, body: Callable[[], None], wait_for: Sequence[Any] = ()) -> NestedRun | None:
    """Run `body` as a flow run within the current one, or plainly outside of any flow.

    `wait_for`: results of the runs that come before it. Returns None where the run could not be recorded: a server that
    does not answer costs a night its picture and nothing else. Raises what `body` raises.
    """
    if FlowRunContext.get() is None:
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

    nested: Any = Flow(run, name=name, flow_run_name=label, validate_parameters=False, persist_result=False)
    try:
        return nested(wait_for=wait_for)
    except (httpx.HTTPError, PrefectHTTPStatusError) as error:
        log.warning("Prefect does not show %s as a run of its own: %s", label, error)
        if not raised:
            body()
        elif raised[0] is not None:
            raise raised[0] from None
        return None
