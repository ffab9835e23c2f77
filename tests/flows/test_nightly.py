"""How a night ends: what Prefect shows of it, and what its caller gets."""

from collections.abc import Callable
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows import nightly
from flows.nightly import final_state, run_night
from flows.run.context import Night
from tasks.monitoring.tracking import Tracking


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ({"decision": "promoted", "alarms": ["Slow."]}, "1 alarm: Slow. The candidate was promoted."),
        ({"decision": "kept", "alarms": ["Disk.", "Slow."]}, "2 alarms: Disk. Slow. The champion stays."),
    ],
)
def test_the_final_state_names_the_alarms_first(summary: dict[str, Any], message: str) -> None:
    assert final_state(summary).message == message


def test_a_night_has_its_own_log(
    home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "nightschool")
    night = Night(home_with_mlflow("school"), "2026-11-20", load_night(STARTER))
    night.folder.mkdir(parents=True)

    def broken(night: Night, _: Tracking) -> dict[str, Any]:
        with night.announced("exam/candidate"):
            pass
        raise RuntimeError("the exam failed")

    monkeypatch.setattr(nightly, "_run_stages", broken)
    with pytest.raises(RuntimeError, match="the exam failed"):
        run_night(night)
    begun, *_, last = (night.folder / "logs" / "night.log").read_text().splitlines()
    assert begun.endswith("INFO exam · candidate begins")
    assert last.endswith("ERROR RuntimeError: the exam failed")
