"""Sends a night's events to Prefect's server, or keeps them until it is back. No stage waits for it, or fails."""

from contextlib import suppress

from prefect.events import Event
from prefect.events.clients import RETRYABLE_EXCEPTIONS, PrefectEventsClient
from prefect.events.worker import EventsWorker, emit_events_to_cloud

RECONNECTIONS = 2  # immediate attempts; before any further attempt, the client would sleep for a second per event

emit_or_fail = PrefectEventsClient._emit


def tolerate_lost_server() -> None:
    """Make this process keep the events of its runs while no server answers, instead of waiting or failing.

    This patches Prefect's events client, the only class that sends the events of runs.
    """
    PrefectEventsClient._emit = _emit_or_keep  # pyrefly: ignore[bad-assignment]
    if EventsWorker._client_override is None and not emit_events_to_cloud():
        EventsWorker.set_client_override(PrefectEventsClient, reconnection_attempts=RECONNECTIONS)


async def _emit_or_keep(client: PrefectEventsClient, event: Event) -> None:
    """Send an event. If that fails, the client keeps the event as unconfirmed and sends it along with the next one."""
    with suppress(*RETRYABLE_EXCEPTIONS):
        await emit_or_fail(client, event)
