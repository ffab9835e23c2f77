"""What a night asks of Prefect's server while it runs: nothing that a stage would have to wait for, or would fail for.

A server may die or be restarted in the middle of a night. What it is to be told is kept until it is back.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from prefect import task_engine
from prefect.events import Event
from prefect.events.clients import RETRYABLE_EXCEPTIONS, PrefectEventsClient
from prefect.events.worker import EventsWorker, emit_events_to_cloud

RECONNECTIONS = 2  # made at once; before any further one the client sleeps a second, for every event of the night


class PatientEvents(PrefectEventsClient):
    """Tells a server of the runs; what it could not tell yet, it tells as soon as the server is back."""

    def __init__(self) -> None:
        super().__init__(reconnection_attempts=RECONNECTIONS)

    async def _emit(self, event: Event) -> None:
        with suppress(*RETRYABLE_EXCEPTIONS):  # it is among the unconfirmed ones, which the next event sends again
            await super()._emit(event)


def need_no_server() -> None:
    """Has the stages of this process begin, run and end though no server answers.

    Prefect asks for a slot of each of a task's tags, and fails the task where it gets no answer. Ours take none: tags
    are there to find a run by, and that there is one night at a time is the lock's to see to.
    """
    task_engine._concurrency = _no_slots  # pyright: ignore[reportPrivateUsage]
    if EventsWorker._client_override is None and not emit_events_to_cloud():
        EventsWorker.set_client_override(PatientEvents)


@contextmanager
def _no_slots(**_: Any) -> Iterator[None]:
    yield
