"""How a night ends: what Prefect shows of it, and what its caller gets."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow
from prefect.states import AwaitingRetry, Crashed, Pending

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows import nightly
from flows.nightly import final_state, run_night
from flows.run.context import Night
from tasks.tracking import Tracking
from tests.tasks.doubles.webhook import listening


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ({"decision": "promoted", "alarms": ["Slow."]}, "1 alarm: Slow. The candidate was promoted."),
        ({"decision": "kept", "alarms": ["Disk.", "Slow."]}, "2 alarms: Disk. Slow. The champion stays."),
    ],
)
def test_the_final_state_names_the_alarms_first(summary: dict[str, Any], message: str) -> None:
    assert final_state(summary).message == message


@pytest.mark.usefixtures("prefect_server")
def test_the_caller_gets_the_summary_and_prefect_shows_the_message() -> None:
    summary = {"decision": "promoted", "alarms": []}

    @flow
    def night() -> dict[str, Any]:
        return final_state(summary)

    state: Any = night(return_state=True)
    assert state.result() == summary
    with get_client(sync_client=True) as client:
        shown = client.read_flow_run(state.state_details.flow_run_id).state
    assert shown is not None
    assert (shown.name, shown.message) == ("Completed", "No alarms. The candidate was promoted.")


@pytest.mark.usefixtures("prefect_server")
def test_a_retried_run_counts_from_its_first_start() -> None:
    began: list[float | None] = []

    @flow
    def night() -> None:
        began.append(nightly._first_start())

    with get_client(sync_client=True) as client:
        run = client.create_flow_run(night, state=Pending())
        run_flow(night, flow_run=client.read_flow_run(run.id))  # as a worker does
        first = client.read_flow_run(run.id).start_time
        assert first is not None
        for state in (Crashed(), AwaitingRetry()):
            client.set_flow_run_state(run.id, state, force=True)
        run_flow(night, flow_run=client.read_flow_run(run.id))
    assert began == [first.timestamp()] * 2
    assert nightly._first_start() is None


def test_the_report_is_posted_once_the_night_is_over(
    home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    night = Night(home_with_mlflow("school"), "2026-11-20", load_night(STARTER, ["morning.webhook_variable=MY_CHAT"]))
    night.folder.mkdir(parents=True)

    def broken(_: Night, __: Tracking) -> dict[str, Any]:
        raise RuntimeError("the exam failed")

    def finished(night: Night, _: Tracking) -> dict[str, Any]:
        (night.folder / "report.md").write_text("# Night of 20 November 2026")
        return {"night": night.date}

    with listening() as webhook:
        monkeypatch.setenv("MY_CHAT", webhook.url("takes"))
        monkeypatch.setattr(nightly, "_run_stages", broken)
        with pytest.raises(RuntimeError, match="the exam failed"):
            run_night(night)
        assert webhook.got == []
        monkeypatch.setattr(nightly, "_run_stages", finished)
        assert run_night(night) == {"night": "2026-11-20"}
        ((_, _, body),) = webhook.got
        assert json.loads(body) == {"text": "# Night of 20 November 2026"}
        monkeypatch.setenv("MY_CHAT", webhook.url("refuses"))
        assert run_night(night) == {"night": "2026-11-20"}
