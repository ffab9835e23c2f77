"""How a night ends: what Prefect shows of it, and what its caller gets."""

from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from flows.nightly import concluded


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ({"decision": "promoted", "alarms": []}, "No alarms. The candidate was promoted."),
        ({"decision": "promoted", "alarms": ["Slow."]}, "1 alarm: Slow. The candidate was promoted."),
        ({"decision": "kept", "alarms": ["Disk.", "Slow."]}, "2 alarms: Disk. Slow. The champion stays."),
    ],
)
def test_the_final_state_says_the_alarms_first_and_the_caller_gets_the_summary(
    summary: dict[str, Any], message: str
) -> None:
    @flow
    def night() -> dict[str, Any]:
        return concluded(summary)

    assert night() == summary
    state: Any = night(return_state=True)
    assert (state.name, state.message, state.result()) == ("Completed", message, summary)
    with get_client(sync_client=True) as client:
        shown = client.read_flow_run(state.state_details.flow_run_id).state
    assert shown is not None
    assert (shown.name, shown.message) == ("Completed", message)
