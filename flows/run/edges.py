"""The night's graph, as Prefect draws it: which results a stage comes after, and nested runs with their own graphs."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
from prefect import Flow
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from conf.storage.layout import run_name
from tasks.stage import artifacts_in

R = TypeVar("R")
log = logging.getLogger("nightschool")


class NestedRun:
    """The result of a nested run, by whose identity Prefect draws edges from the run to what waits for it."""


class Edges:
    """The night's results so far. A stage comes after what made the artifacts and checkpoints that it is given."""

    def __init__(self) -> None:
        self._origins: dict[str, Any] = {}  # the result that a checkpoint comes from, by its digest
        self._last: dict[int, Any] = {}  # results that nothing has come after, by id
        self._first: list[Any] = []  # the night's first result
        self._lost = False  # whether the server has stopped answering

    @property
    def last(self) -> list[Any]:
        """The results that no stage has come after so far."""
        return list(self._last.values())

    def add(self, result: R, checkpoint: Path | None = None) -> R:
        """Note a result, and that a checkpoint comes from it. Returns the result."""
        self._last[id(result)] = result
        self._first = self._first or [result]
        if checkpoint is not None:
            self._origins[checkpoint.name] = result
        return result

    def upstream(self, arguments: Iterable[Any], after: Sequence[Any] = ()) -> list[Any]:
        """Return the results that a stage comes after, by its arguments and those named in `after`.

        A stage that takes nothing of tonight's comes after the night's first one.
        """
        given = list(arguments)
        found = [*after, *artifacts_in(given), *self._origins_of(given)] or self._first
        for result in found:
            self._last.pop(id(result), None)
        return found

    def run_nested(
        self, name: str, path: str, body: Callable[[], Path], checkpoint: Path, after: Sequence[Any] = ()
    ) -> Path:
        """Run several stages, which go on from a checkpoint, as a nested flow run; plainly outside of any flow.

        Returns the checkpoint that `body` returns; outside of the run, this is what others come after. A server that
        does not answer costs a night its picture, and once the seconds until Prefect gives up. Raises what `body`
        raises.
        """
        label, upstream = run_name(path), self.upstream([checkpoint], after)
        if FlowRunContext.get() is None or self._lost:
            return body()
        made: list[Path] = []
        raised: list[Exception] = []

        def run() -> NestedRun:
            try:
                made.append(body())
            except Exception as error:
                raised.append(error)
                raise
            return NestedRun()

        # A heartbeat would take most of a run's price; the night's own is enough.
        nested: Any = Flow(run, name=name, flow_run_name=label, validate_parameters=False, persist_result=False)
        outer, self._last = self._last, {}
        try:
            with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
                result = nested(wait_for=upstream)
        except (httpx.HTTPError, PrefectHTTPStatusError) as error:
            log.warning("Prefect does not show %s and later rounds as nested runs: %s", label, error)
            self._lost = True
            if raised:
                raise raised[0] from None
            return made[0] if made else body()
        finally:
            self._last = outer
        self.add(result, made[0])
        return made[0]

    def _origins_of(self, value: Any) -> list[Any]:
        """Return what the checkpoints among a stage's arguments come from; a text may be a checkpoint's digest."""
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            return [origin for item in value for origin in self._origins_of(item)]
        digest = value.name if isinstance(value, Path) else value if isinstance(value, str) else ""
        return [self._origins[digest]] if digest in self._origins else []
