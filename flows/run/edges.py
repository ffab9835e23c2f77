"""The night's dependency graph in Prefect: the results that each stage depends on, and nested runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
from prefect import Flow
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from conf.storage.layout import run_name
from conf.storage.log import log
from tasks.stage import Artifact

R = TypeVar("R")


class NestedRun:
    """The result of a nested run. Prefect draws an edge from the run to each task that waits for this object."""


class Edges:
    """Records the night's results. A stage depends on the results that produced its input artifacts and checkpoints."""

    def __init__(self) -> None:
        self._origins: dict[str, Any] = {}  # the result that produced each checkpoint, by its digest
        self._last: dict[int, Any] = {}  # results that no stage depends on yet, by id
        self._first: list[Any] = []  # the night's first result
        self._lost = False  # whether the server has stopped answering

    @property
    def last(self) -> list[Any]:
        """The results that no stage depends on yet."""
        return list(self._last.values())

    def add(self, result: R, checkpoint: Path | None = None) -> R:
        """Record a result and the checkpoint that it produced, if there is one. Returns the result."""
        self._last[id(result)] = result
        self._first = self._first or [result]
        if checkpoint is not None:
            self._origins[checkpoint.name] = result
        return result

    def upstream(self, arguments: Iterable[Any], after: Sequence[Any] = ()) -> list[Any]:
        """Return the results that a stage depends on: those in `after`, and those that produced its arguments.

        A stage that uses no result of tonight depends on the night's first result.
        """
        found = [*after, *filter(None, map(self._origin, _leaves(list(arguments))))] or self._first
        for result in found:
            self._last.pop(id(result), None)
        return found

    def run_nested(
        self, name: str, path: str, body: Callable[[], Path], checkpoint: Path, after: Sequence[Any] = ()
    ) -> Path:
        """Run `body`, which runs several stages, as a nested flow run. Outside a flow, call it directly.

        `checkpoint`: the checkpoint that `body` starts from. Returns the checkpoint that `body` returns, and raises the
        errors that `body` raises. Later stages depend on the nested run as a whole. If the Prefect server does not
        answer, the night waits until Prefect gives up, and from then on makes no nested runs.
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

        # A heartbeat would make up most of a nested run's cost, and the night's own heartbeat is enough.
        nested: Any = Flow(run, name=name, flow_run_name=label, validate_parameters=False, persist_result=False)
        outer, self._last = self._last, {}
        try:
            with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
                result = nested(wait_for=upstream)
        except httpx.HTTPError as error:
            log.warning("Prefect does not show %s and later rounds as nested runs: %s", label, error)
            self._lost = True
            if raised:
                raise raised[0] from None
            return made[0] if made else body()
        finally:
            self._last = outer
        self.add(result, made[0])
        return made[0]

    def _origin(self, value: Any) -> Any:
        """Return the result that an argument is, or that produced the checkpoint with this path or digest, or None."""
        if isinstance(value, Artifact):
            return value
        digest = value.name if isinstance(value, Path) else value
        return self._origins.get(digest) if isinstance(digest, str) else None


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what an argument consists of, including what is nested in lists, tuples and mappings."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
