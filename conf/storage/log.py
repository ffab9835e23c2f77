"""The program's log: `log`, under the logger `nightschool`."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("nightschool")


@contextmanager
def warnings() -> Iterator[list[str]]:
    """Yield a list that receives the warnings logged in the meantime, which the console doesn't show."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)
