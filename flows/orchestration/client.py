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

emit_or_fail = PrefectEventsClient._emit


def need_no_server() -> None:
    """Has the stages of this process begin, run and end though no server answers.

    Prefect asks for a slot of each of a task's tags, and fails the task where it gets no answer. Ours take none: tags
    are there to find a run by, and that there is one night at a time is the lock's to see to. Events of runs go on
    through Prefect's own client: it takes none where its class is another one.
    """
    task_engine._concurrency = _no_slots  # pyright: ignore[reportPrivateUsage]
    PrefectEventsClient._emit = _emit_or_keep  # pyright: ignore[reportAttributeAccessIssue]
    if EventsWorker._client_override is None and not emit_events_to_cloud():
        EventsWorker.set_client_override(PrefectEventsClient, reconnection_attempts=RECONNECTIONS)


async def _emit_or_keep(client: PrefectEventsClient, event: Event) -> None:
    """What the server could not be told yet is among the client's unconfirmed events: the next one sends it again."""
    with suppress(*RETRYABLE_EXCEPTIONS):
        await emit_or_fail(client, event)


@contextmanager
def _no_slots(**_: Any) -> Iterator[None]:
    yield
