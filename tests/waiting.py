"""Waiting for what other processes and threads do."""

import time
from collections.abc import Callable
from typing import Any

import httpx


def awaited(look: Callable[[], Any], what: str = "sign of it", limit: float = 20.0) -> Any:
    """Return the result of `look` as soon as it is truthy."""
    until, pause = time.monotonic() + limit, 0.01
    while not (result := look()):
        assert time.monotonic() < until, f"no {what} within {limit} s"
        time.sleep(pause)
        pause = min(2 * pause, 0.3)
    return result


def answers(url: str) -> bool:
    """Whether a server is there, be it closed to us."""
    try:
        return httpx.get(url).status_code < 500
    except httpx.TransportError:
        return False
