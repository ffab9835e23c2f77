"""Stand-ins for `tasks.workers.worker.Worker` that need no child process."""

import threading
from collections.abc import Callable, Sequence
from typing import Any


class InProcessWorker:
    """Calls functions in this process, one at a time; remembers which in `functions`."""

    lost = False

    def __init__(self) -> None:
        self.functions: list[Callable[..., Any]] = []
        self._one, self.goes_on = threading.RLock(), threading.Event()
        self.goes_on.set()

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        with self._one:
            self.goes_on.wait(60)
            self.functions.append(function)
            return function(*arguments, **options)

    def spread(self, job: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """Return what the job makes of each item."""
        return [job(self, item) for item in items]

    def pause(self, paused: bool = True) -> None:
        """Hold up the calls that follow, as a stopped process does."""
        if paused:
            self.goes_on.clear()
        else:
            self.goes_on.set()

    def end(self) -> None:
        """There is nothing to end."""


class FailingWorker(InProcessWorker):
    """Raises the error in place of every call."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.functions.append(function)
        raise self.error
