"""The end of a night: promotion, report and notification; where MLflow dies, one command finishes it."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.home import SUMMARY, Home, NightError
from conf.storage.locks import alias_lock
from flows import finish, nightly
from flows.run.child import end_child
from flows.run.context import Night
from flows.training.monitor import Monitor
from flows.web.address import LOOPBACK, Address, free_port
from flows.web.pages import _start_mlflow
from models.hf.checkpoint import CARD
from tasks.monitoring.alarms import Alarm
from tasks.monitoring.notify import VARIABLE
from tasks.monitoring.tracking import NIGHT_RUNS, Tracking
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, Registry
from tasks.registry.promote import OUTCOME
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, write_table
from tests.tasks.doubles.night import write_night
from tests.tasks.doubles.registry import make_models
from tests.tasks.doubles.webhook import Webhook, listening
from tests.waiting import answers, awaited

DATE = "2026-11-20"


class Ending:
    """A night whose exam is over, and its webhook."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch, webhook: Webhook) -> None:
        self.home, self.folder, self.monkeypatch, self.webhook = home, home.night(DATE), monkeypatch, webhook
        self.configure()
        models = make_models(home.checkpoints)
        self.models = {role: models[role] for role in ("champion", "candidate")}
        write_night(self.folder)
        (self.folder / "alarms.json").write_text(json.dumps([asdict(Alarm("one", False, "An alarm."))]))
        for name in self.models:
            write_table(self.folder / "evaluate" / name / "samples.parquet", EVALUATIONS, [])
        monkeypatch.setenv(VARIABLE, webhook.url("takes"))
        monkeypatch.setattr(nightly, "_run_stages", self._end)

    def configure(self, *settings: str) -> None:
        self.config = load_night(STARTER, settings)

    def run(self) -> dict[str, Any]:
        """Run the rest of the night."""

        @flow
        def end_of_a_night() -> dict[str, Any]:
            return nightly.run_night(Night(self.home, DATE, self.config))

        return end_of_a_night()

    def _end(self, night: Night, tracking: Tracking) -> dict[str, Any]:
        decision = Artifact(folder=self.folder / "decide", digest="")
        exams = {name: Artifact(folder=self.folder / "evaluate" / name, digest="") for name in self.models}
        retention = SimpleNamespace(policies=[None] * 3, remove=lambda keep: None)
        rounds: Any = SimpleNamespace(retention=retention, monitor=Monitor(night, tracking))
        return finish.finish(night, tracking, decision, self.models, exams, rounds)

    def interrupted(self, dies: Callable[[], None], before: str) -> str:
        """Run the rest with an MLflow that dies before a function is called. Returns the night's error."""
        owner, name = before.split(".")
        place: Any = {"finish": finish, "Tracking": Tracking}[owner]
        real = getattr(place, name)

        def dying(*arguments: Any, **named: Any) -> Any:
            dies()
            return real(*arguments, **named)

        with self.monkeypatch.context() as patch:
            patch.setattr(place, name, dying)
            with pytest.raises(NightError) as left:
                self.run()
        return str(left.value)

    def messages(self) -> list[str]:
        """Return the messages that the webhook received."""
        return [json.loads(body)["text"] for _, _, body in self.webhook.got]

    def aliases(self) -> list[str | None]:
        registry = Registry(Tracking(self.home, self.config).client, self.config.name)
        return [named.digest if (named := registry.named(alias)) else None for alias in (DAYTIME, PREVIOUS)]

    @property
    def promoted(self) -> list[str]:
        return [self.models[role].name for role in ("candidate", "champion")]

    @property
    def resume_command(self) -> str:
        return f"nightschool night --config {self.folder}/config.yaml --date {DATE}"


@contextmanager
def mlflow_server(home: Home, port: int) -> Iterator[subprocess.Popen[bytes]]:
    server = _start_mlflow(home, port, Address(LOOPBACK, None))
    try:
        awaited(lambda: answers(f"http://127.0.0.1:{port}/health"), "MLflow server", 120)
        yield server
    finally:
        end_child(server)


@pytest.fixture
def ending(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> Iterator[Ending]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr("tasks.registry.promote.promote.retry_delay_seconds", [0.1, 0.1])
    with listening() as webhook:
        yield Ending(home_with_mlflow("school"), monkeypatch, webhook)


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.full
def test_one_command_finishes_a_night_whose_registry_died_before_the_promotion(ending: Ending) -> None:
    port = free_port()
    ending.configure(f"tracking.tracking_uri=http://127.0.0.1:{port}")
    with mlflow_server(ending.home, port) as server:

        def killed() -> None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()

        left = ending.interrupted(killed, before="finish.write_cards")
    assert left == (
        "MLflow does not answer, so the promotion is not finished. The night is safe, and its decision stands; "
        f"once MLflow is back, finish it with: {ending.resume_command}"
    )
    report = (ending.folder / "report.html").read_text()
    assert ending.resume_command in report
    assert "the champion stays" in report
    assert "Nothing is known to have changed: MLflow could not say which model serves." in report
    assert "An alarm." in report
    assert not (ending.folder / OUTCOME).exists()
    lesson = ending.home.checkpoints / ("0" * 20)  # which only an unfinished night needs
    lesson.mkdir()
    (ending.folder / "distill").mkdir(exist_ok=True)
    (ending.folder / "distill" / "checkpoint.txt").write_text(lesson.name)
    ending.configure()  # the same database, without a server
    assert ending.run()["decision"] == "promoted"
    assert not lesson.exists()
    assert ending.aliases() == ending.promoted
    tracking = Tracking(ending.home, ending.config)
    versions = Registry(tracking.client, ending.config.name).versions()
    assert [version.digest for version in versions] == [one.name for one in ending.models.values()]
    copies = [
        Path(tracking.client.get_logged_model(model.model_id).artifact_location.removeprefix("file://"))
        for model in tracking.client.search_logged_models([tracking.experiment_id])
    ]
    weights = {(copy / "model" / "model.safetensors").stat().st_ino for copy in copies}
    assert weights == {(one / "model.safetensors").stat().st_ino for one in ending.models.values()}  # not copied
    assert all((copy / "model" / CARD).exists() for copy in copies)


@pytest.mark.full
@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("moment", ["finish.log_exams", "Tracking.close_run"])
def test_an_mlflow_that_dies_after_the_promotion_costs_no_report(ending: Ending, moment: str) -> None:
    database, whole = ending.home.database_file, b""

    def broken() -> None:
        nonlocal whole
        whole = whole or database.read_bytes()
        database.write_bytes(b"x" * len(whole))

    left = ending.interrupted(broken, before=moment)
    assert left == (
        "MLflow does not answer, so the night's last figures and this report may be missing in it. The night is "
        f"safe, and its decision is carried out; once MLflow is back, finish it with: {ending.resume_command}"
    )
    report = (ending.folder / "report.html").read_text()
    for text in ("the candidate was promoted", ending.resume_command, "An alarm."):
        assert text in report
    (first,) = ending.messages()
    assert first == (ending.folder / "report.md").read_text()
    assert left in first
    assert not (ending.folder / SUMMARY).exists()
    database.write_bytes(whole)
    assert ending.aliases() == ending.promoted
    summary = ending.run()
    assert (summary["decision"], summary["alarms"]) == ("promoted", ["An alarm."])
    assert json.loads((ending.folder / SUMMARY).read_text()) == summary
    assert ending.aliases() == ending.promoted
    assert "MLflow does not answer" not in ending.messages()[-1]
    tracking = Tracking(ending.home, ending.config)
    (run,) = tracking.client.search_runs([tracking.experiment_id], NIGHT_RUNS)
    assert (run.info.status, run.data.tags["decision"]) == ("FINISHED", "promoted")
    assert "report.html" in [file.path for file in tracking.client.list_artifacts(run.info.run_id)]


@pytest.mark.full
@pytest.mark.usefixtures("prefect_server")
def test_a_rollback_that_hangs_leaves_a_night_that_one_command_finishes(ending: Ending) -> None:
    ending.monkeypatch.setattr("conf.storage.locks.ALIAS_SECONDS", 0.2)
    before = ending.aliases()
    with alias_lock(ending.home), pytest.raises(NightError) as left:
        ending.run()
    assert str(left.value) == (
        "another `nightschool promote` or `rollback` does not end, so the promotion is not finished. The night is "
        f"safe, and its decision stands; once it has ended, finish it with: {ending.resume_command}"
    )
    assert ending.resume_command in (ending.folder / "report.html").read_text()
    assert ending.aliases() == before
    assert ending.run()["decision"] == "promoted"
    assert ending.aliases() == ending.promoted
