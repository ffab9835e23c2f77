"""How a night talks to Prefect's server: a stage neither waits for it nor fails because of it.

A server may die or be restarted during a night. What it could not be sent is kept until it is back.
"""

from contextlib import suppress

from prefect.events import Event
from prefect.events.clients import RETRYABLE_EXCEPTIONS, PrefectEventsClient
from prefect.events.worker import EventsWorker, emit_events_to_cloud

RECONNECTIONS = 2  # made at once; before any further one the client sleeps for a second, at every event

emit_or_fail = PrefectEventsClient._emit


def tolerate_lost_server() -> None:
    """Make this process keep the events of its runs while no server answers, without waiting and without errors.

    Prefect's own client class is patched: events of runs are sent through no other class.
    """
    PrefectEventsClient._emit = _emit_or_keep  # pyright: ignore[reportAttributeAccessIssue]
    if EventsWorker._client_override is None and not emit_events_to_cloud():
        EventsWorker.set_client_override(PrefectEventsClient, reconnection_attempts=RECONNECTIONS)


async def _emit_or_keep(client: PrefectEventsClient, event: Event) -> None:
    """Send an event. One that fails stays among the client's unconfirmed events, which the next one takes along."""
    with suppress(*RETRYABLE_EXCEPTIONS):
        await emit_or_fail(client, event)
