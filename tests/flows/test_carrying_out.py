"""The end of a night: the decision is carried out and told, or, where MLflow dies, left to one command."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.exceptions import MlflowException
from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.durable import DiskFullError
from conf.storage.home import SUMMARY, Home, NightError
from flows import nightly
from flows.evaluation.vault import Vault
from flows.run.context import Night
from flows.training.monitor import NightWatch
from flows.web.address import LOOPBACK, Address, free_port
from flows.web.pages import _start_mlflow, end
from models.checkpoint import CARD
from tasks.monitoring.alarms import Alarm
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, Registry
from tasks.registry.promote import OUTCOME
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, write_table
from tasks.tracking import NIGHT_RUNS, Tracking
from tests.tasks.doubles.night import TARGET, write_night
from tests.tasks.doubles.registry import make_models
from tests.tasks.doubles.webhook import Webhook, listening

DATE = "2026-11-20"


class Morning:
    """A night whose exam is over, and its webhook."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch, webhook: Webhook) -> None:
        self.home, self.folder, self.monkeypatch, self.webhook = home, home.night(DATE), monkeypatch, webhook
        self.configure()
        self.sitters = make_models(home.checkpoints)
        write_night(self.folder)
        (self.folder / "alarms.json").write_text(json.dumps([asdict(Alarm("one", False, "An alarm."))]))
        decision = self.folder / "decide" / "decision.json"
        decision.write_text(json.dumps(json.loads(decision.read_text()) | {"target": TARGET}))
        for who in self.sitters:
            write_table(self.folder / "evaluate" / who / "samples.parquet", EVALUATIONS, [])
        monkeypatch.setenv("MY_CHAT", webhook.url("takes"))
        monkeypatch.setattr(nightly, "_stages", self._end)

    def configure(self, *settings: str) -> None:
        self.config = load_night(STARTER, ["morning.webhook_variable=MY_CHAT", *settings])

    def study(self) -> dict[str, Any]:
        """What the command does, but for the stages that are over."""

        @flow
        def end_of_a_night() -> dict[str, Any]:
            return nightly.study(Night(self.home, DATE, self.config))

        return end_of_a_night()

    def _end(self, night: Night, tracking: Tracking) -> dict[str, Any]:
        decision = Artifact(folder=self.folder / "decide", digest="")
        sat = {who: Artifact(folder=self.folder / "evaluate" / who, digest="") for who in self.sitters}
        watch = NightWatch(night, tracking)
        rounds: Any = SimpleNamespace(policies=[None] * 3, watch=watch, retire=lambda keep: None)
        vault = Vault(night, [], self.sitters["champion"])
        return nightly._morning(night, tracking, decision, self.sitters, sat, rounds, vault)

    def left_open(self, dies: Callable[[], None], before: str) -> str:
        """Runs it with an MLflow that dies right before a function is called. Returns what the night ends with."""
        owner, name = before.split(".")
        place: Any = {"nightly": nightly, "Tracking": Tracking}[owner]
        real = getattr(place, name)

        def dying(*arguments: Any, **named: Any) -> Any:
            dies()
            return real(*arguments, **named)

        with self.monkeypatch.context() as patch:
            patch.setattr(place, name, dying)
            with pytest.raises(NightError) as left:
                self.study()
        return str(left.value)

    def told(self) -> list[str]:
        """What the webhook was sent."""
        return [json.loads(body)["text"] for _, _, body in self.webhook.got]

    def aliases(self) -> list[str | None]:
        registry = Registry(Tracking(self.home, self.config).client, self.config.name)
        return [named.digest if (named := registry.named(alias)) else None for alias in (DAYTIME, PREVIOUS)]

    @property
    def promoted(self) -> list[str]:
        """What the aliases are after the promotion."""
        return [self.sitters[who].name for who in ("candidate", "champion")]

    @property
    def again(self) -> str:
        return f"nightschool night --config {self.folder}/config.yaml --date {DATE}"


@contextmanager
def mlflow_server(home: Home, port: int) -> Iterator[subprocess.Popen[bytes]]:
    server = _start_mlflow(home, port, Address(LOOPBACK, None))
    try:
        _wait(port)
        yield server
    finally:
        end(server)


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise AssertionError("no MLflow server")


@pytest.fixture
def morning(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> Iterator[Morning]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr("tasks.registry.promote.promote.retry_delay_seconds", [0.1, 0.1])
    with listening() as webhook:
        yield Morning(home_with_mlflow("school"), monkeypatch, webhook)


@pytest.mark.usefixtures("prefect_server")
def test_a_registry_that_dies_before_the_promotion_leaves_one_command_that_finishes_it(morning: Morning) -> None:
    port = free_port()
    morning.configure(f"tracking.tracking_uri=http://127.0.0.1:{port}")
    with mlflow_server(morning.home, port) as server:

        def killed() -> None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()

        left = morning.left_open(killed, before="nightly.carry_out")
    assert left == (
        "MLflow does not answer, so that the promotion is not finished. The night is safe, and its decision stands; "
        f"once MLflow is back, finish it with: {morning.again}"
    )
    report = (morning.folder / "report.html").read_text()
    assert morning.again in report
    assert "the champion stays" in report
    assert "An alarm." in report
    assert not (morning.folder / OUTCOME).exists()
    with mlflow_server(morning.home, port):
        assert morning.study()["decision"] == "promoted"
        assert morning.aliases() == morning.promoted
        tracking = Tracking(morning.home, morning.config)
        versions = Registry(tracking.client, morning.config.name).versions()
        assert [version.digest for version in versions] == [one.name for one in morning.sitters.values()]
        copies = [
            Path(tracking.client.get_logged_model(model.model_id).artifact_location.removeprefix("file://"))
            for model in tracking.client.search_logged_models([tracking.experiment_id])
        ]
        weights = {(copy / "model.safetensors").stat().st_ino for copy in copies}
        assert weights == {(one / "model.safetensors").stat().st_ino for one in morning.sitters.values()}  # not copied
        assert all((copy / CARD).exists() for copy in copies)


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("moment", ["nightly.log_exams", "nightly.prune", "Tracking.close_run"])
def test_an_mlflow_that_dies_after_the_promotion_costs_no_report(morning: Morning, moment: str) -> None:
    database, whole = morning.home.database_file, b""

    def broken() -> None:
        nonlocal whole
        whole = whole or database.read_bytes()
        database.write_bytes(b"x" * len(whole))

    left = morning.left_open(broken, before=moment)
    assert left == (
        "MLflow does not answer, so that the night's last figures and this report may be missing in it. The night is "
        f"safe, and its decision is carried out; once MLflow is back, finish it with: {morning.again}"
    )
    report = (morning.folder / "report.html").read_text()
    for told in ("the candidate was promoted", morning.again, "An alarm."):
        assert told in report
    (first,) = morning.told()
    assert first == (morning.folder / "report.md").read_text()
    assert left in first
    assert not (morning.folder / SUMMARY).exists()
    database.write_bytes(whole)
    assert morning.aliases() == morning.promoted
    summary = morning.study()
    assert (summary["decision"], summary["alarms"]) == ("promoted", ["An alarm."])
    assert json.loads((morning.folder / SUMMARY).read_text()) == summary
    assert morning.aliases() == morning.promoted
    assert "MLflow does not answer" not in morning.told()[-1]
    tracking = Tracking(morning.home, morning.config)
    (run,) = tracking.client.search_runs([tracking.experiment_id], NIGHT_RUNS)
    assert (run.info.status, run.data.tags["decision"]) == ("FINISHED", "promoted")
    assert "report.html" in [file.path for file in tracking.client.list_artifacts(run.info.run_id)]


@pytest.mark.usefixtures("prefect_server")
def test_a_full_disk_under_mlflow_is_told_as_that(morning: Morning, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise MlflowException("(sqlite3.OperationalError) database or disk is full")

    monkeypatch.setattr(nightly, "log_exams", full)
    with pytest.raises(DiskFullError, match="make room, and the same command goes on"):
        morning.study()
