"""How a night ends: what Prefect shows of it, and what its caller gets."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows import nightly
from flows.nightly import final_state, run_night
from flows.run.context import Night
from tasks.monitoring.notify import VARIABLE
from tasks.monitoring.tracking import Tracking
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


def test_the_report_is_posted_at_the_end_and_the_night_has_its_own_log(
    home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "nightschool")
    night = Night(home_with_mlflow("school"), "2026-11-20", load_night(STARTER))
    night.folder.mkdir(parents=True)

    def broken(night: Night, _: Tracking) -> dict[str, Any]:
        with night.announced("exam/candidate"):
            pass
        raise RuntimeError("the exam failed")

    def finished(night: Night, _: Tracking) -> dict[str, Any]:
        (night.folder / "report.md").write_text("# Night of 20 November 2026")
        return {"night": night.date}

    with listening() as webhook:
        monkeypatch.setenv(VARIABLE, webhook.url("takes"))
        monkeypatch.setattr(nightly, "_run_stages", broken)
        with pytest.raises(RuntimeError, match="the exam failed"):
            run_night(night)
        assert webhook.got == []
        begun, *_, last = (night.folder / "logs" / "night.log").read_text().splitlines()
        assert begun.endswith("INFO exam · candidate begins")
        assert last.endswith("ERROR RuntimeError: the exam failed")
        monkeypatch.setattr(nightly, "_run_stages", finished)
        assert run_night(night) == {"night": "2026-11-20"}
        ((_, _, body),) = webhook.got
        assert json.loads(body) == {"text": "# Night of 20 November 2026"}
        monkeypatch.setenv(VARIABLE, webhook.url("refuses"))
        assert run_night(night) == {"night": "2026-11-20"}
