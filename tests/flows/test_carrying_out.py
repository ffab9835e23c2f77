"""The decision is carried out, or, where the registry does not answer, left to one command that finishes it."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from conf.home import Home, NightError
from conf.load import STARTER, load_night
from flows.address import LOOPBACK, Address
from flows.carrying_out import carry_out
from flows.night import Night
from flows.pages import _start_mlflow, end
from flows.ports import free_port
from models.checkpoint import CARD
from tasks.promote import OUTCOME
from tasks.registry import DAYTIME, PREVIOUS, Registry
from tasks.stage import Artifact
from tasks.tracking import Tracking
from tests.tasks.night_folder import TARGET, write_night
from tests.tasks.test_model_card import make_sitters

DATE = "2026-11-20"


class Morning:
    """A night whose exam is over, and an MLflow server that can be killed."""

    def __init__(self, home: Home) -> None:
        self.home, self.port = home, free_port()
        self.config = load_night(STARTER, [f"tracking.tracking_uri=http://127.0.0.1:{self.port}"])
        self.sitters = make_sitters(home.checkpoints)
        write_night(home.night(DATE))
        decision = home.night(DATE) / "decide" / "decision.json"
        decision.write_text(json.dumps(json.loads(decision.read_text()) | {"target": TARGET}))
        self.decision = Artifact(folder=decision.parent, digest="")
        self.night = Night(home, DATE, self.config)
        self.night.close()

    @contextmanager
    def server(self) -> Iterator[subprocess.Popen[bytes]]:
        server = _start_mlflow(self.home, self.port, Address(LOOPBACK, None))
        try:
            self._wait()
            yield server
        finally:
            end(server)

    def _wait(self) -> None:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.2)
        raise AssertionError("no MLflow server")

    def carry_out(self, tracking: Tracking) -> dict[str, Any]:
        @flow
        def end_of_a_night() -> dict[str, Any]:
            return carry_out(self.night, self.decision, self.sitters, tracking, 3, ["An alarm."], {})

        return end_of_a_night()

    def aliases(self, tracking: Tracking) -> list[str | None]:
        registry = Registry(tracking.client, self.config.name)
        return [named.digest if (named := registry.named(alias)) else None for alias in (DAYTIME, PREVIOUS)]


@pytest.fixture
def morning(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> Morning:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr("tasks.promote.promote.retry_delay_seconds", [0.1, 0.1])
    return Morning(home_with_mlflow("school"))


@pytest.mark.usefixtures("prefect_server")
def test_a_registry_that_dies_before_the_promotion_leaves_one_command_that_finishes_it(morning: Morning) -> None:
    folder = morning.home.night(DATE)
    with morning.server() as server:
        tracking = Tracking(morning.home, morning.config)
        tracking.open_run(folder, morning.config, {})
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        with pytest.raises(NightError) as left:
            morning.carry_out(tracking)
    again = f"nightschool night --config {folder}/config.yaml --date {DATE}"
    assert str(left.value).endswith(
        f"The night is safe, and its decision stands; once the registry is back, finish it with: {again}"
    )
    report = (folder / "report.html").read_text()
    assert again in report
    assert "the champion stays" in report
    assert not (folder / OUTCOME).exists()
    with morning.server():
        found = morning.carry_out(tracking)
        assert found["promote"]
        assert morning.aliases(tracking) == [morning.sitters[who].name for who in ("candidate", "champion")]
        versions = Registry(tracking.client, morning.config.name).versions()
        assert [version.digest for version in versions] == [one.name for one in morning.sitters.values()]
        copies = [
            Path(tracking.client.get_logged_model(model.model_id).artifact_location.removeprefix("file://"))
            for model in tracking.client.search_logged_models([tracking.experiment_id])
        ]
        weights = {(copy / "model.safetensors").stat().st_ino for copy in copies}
        assert weights == {(one / "model.safetensors").stat().st_ino for one in morning.sitters.values()}  # not copied
        assert all((copy / CARD).exists() for copy in copies)
