"""Which results a stage of the night comes after: Prefect draws the night's graph by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tasks.stage import artifacts_in

R = TypeVar("R")


class Edges:
    """The night's results so far. A stage comes after what made the artifacts and checkpoints that it is given."""

    def __init__(self) -> None:
        self._origins: dict[str, Any] = {}  # the result that a checkpoint comes from, by its digest
        self._last: dict[int, Any] = {}  # results that nothing has come after, by id
        self._first: list[Any] = []  # the night's first result

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

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Keep the results of a nested run apart: outside of it, the run is what others come after."""
        outer, self._last = self._last, {}
        try:
            yield
        finally:
            self._last = outer

    def _origins_of(self, value: Any) -> list[Any]:
        """Return what the checkpoints among a stage's arguments come from; a text may be a checkpoint's digest."""
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            return [origin for item in value for origin in self._origins_of(item)]
        digest = value.name if isinstance(value, Path) else value if isinstance(value, str) else ""
        return [self._origins[digest]] if digest in self._origins else []
