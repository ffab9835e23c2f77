"""A night in a real MLflow database: its configuration, figures, descriptions and files."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

from conf.load import STARTER, frozen_yaml, load_night
from conf.schema import NightConfig
from conf.storage.home import Home
from rewards.arithmetic import Arithmetic
from tasks.monitoring.tracking import RUN_FILE, Tracking, tracking_uri


@pytest.fixture
def home(home_with_mlflow: Callable[[str], Home]) -> Home:
    home = home_with_mlflow("school")
    home.night("2026-11-20").mkdir(parents=True)
    return home


def opened(home: Home, config: NightConfig | None = None) -> Tracking:
    config = config or load_night(STARTER)
    tracking = Tracking(home, config)
    tracking.open_run(home.night("2026-11-20"), config, {"prefect.flow_run": "f1"})
    return tracking


def test_a_night_is_a_run_with_its_whole_configuration(home: Home) -> None:
    config = load_night(STARTER.with_name("nightly.yaml"), ["student.system='" + "long " * 200 + "'"])
    tracking = opened(home, config)
    run = tracking.client.get_run(tracking.run_id)
    assert run.info.run_name == f"{config.name} 2026-11-20"
    assert run.data.params["grpo.rounds"] == str(config.grpo.rounds)
    assert run.data.params["benchmarks"].startswith('[{"name": "')
    assert run.data.params["exam.target.margin"] == str(config.exam.target.margin)
    assert len(run.data.params["student.system"]) == 500
    assert run.data.tags["prefect.flow_run"] == "f1"
    assert run.data.tags["night"] == "2026-11-20"
    assert len(run.data.tags["mlflow.source.git.commit"]) == 40
    assert run.data.tags["mlflow.note.content"].startswith(f"The night 2026-11-20 of `{config.name}`.")
    (frozen,) = (home.root / "mlartifacts").rglob("config.yaml")
    assert frozen.read_text() == frozen_yaml(config)


def test_datasets_are_inputs_of_the_run(home: Home) -> None:
    """Recorded once, however often the night starts; other problems have another digest."""
    problems = Arithmetic(("1",)).problems("test")[:3]
    for _ in range(2):
        tracking = opened(home)
        tracking.log_dataset("arithmetic-1-test", "exam", None, problems)
    tracking.log_dataset("arithmetic-1-test", "exam", None, problems[:2])
    inputs = tracking.client.get_run(tracking.run_id).inputs.dataset_inputs
    assert {(each.dataset.name, each.dataset.profile, each.tags[0].value) for each in inputs} == {
        ("arithmetic-1-test", '{"num_rows": 3}', "exam"),
        ("arithmetic-1-test", '{"num_rows": 2}', "exam"),
    }
    assert len(inputs) == len({each.dataset.digest for each in inputs}) == 2


def test_rounds_arrive_at_their_step_in_groups_of_charts(home: Home) -> None:
    """A figure that is not finite does not end the night."""
    tracking = opened(home)
    others = {"mismatch": 0.01, "seconds_sample": 12.0, "entropy": 1.5, "grad_norm": float("inf")}
    counted = {"verdicts/wrong": 3.0, "verdicts/gsm8k/wrong": 2.0, "reward/format": 0.75}
    for number in (1, 2):
        tracking.log_round(number, {"reward": 0.25 * number, **others, **counted})
    tracking.log({"quiz/accuracy": 0.5}, 2)
    metrics = tracking.client.get_run(tracking.run_id).data.metrics
    assert metrics.pop("update/grad_norm") > 1e300
    grouped = {"reward/reward": 0.5, "sampler/mismatch": 0.01, "seconds/sample": 12.0, "update/entropy": 1.5}
    assert metrics == {**grouped, **counted, "quiz/accuracy": 0.5}
    history = tracking.client.get_metric_history(tracking.run_id, "reward/reward")
    assert [(metric.step, metric.value) for metric in history] == [(1, 0.25), (2, 0.5)]


def test_names_that_mlflow_refuses_are_cleaned(home: Home) -> None:
    """Such a name would be sent again and again, and the night would never finish."""
    tracking = opened(home)
    tracking.log({"curriculum/math/2 · hint 0.25": 0.5, "reward/food (eaten)": 1.0, "exam/räume": 0.25}, 1)
    tracking.catch_up()
    metrics = tracking.client.get_run(tracking.run_id).data.metrics
    assert metrics == {"curriculum/math/2 _ hint 0.25": 0.5, "reward/food _eaten_": 1.0, "exam/räume": 0.25}


def test_a_deleted_experiment_is_restored(home: Home) -> None:
    first = opened(home)
    first.client.delete_experiment(first.experiment_id)
    (home.night("2026-11-20") / RUN_FILE).unlink()
    assert opened(home).experiment_id == first.experiment_id


def test_what_mlflow_missed_is_sent_later_but_not_when_the_night_ends(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = opened(home)

    def fail(*_: object, **__: object) -> None:
        raise MlflowException("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(tracking.client, "log_batch", fail)
        tracking.log_round(1, {"reward": 0.25})
        tracking.tag(alarms="1")
        with pytest.raises(MlflowException):
            tracking.catch_up()
        with pytest.raises(MlflowException):
            tracking.log_round(2, {"reward": 0.5})
    tracking.catch_up()
    run = tracking.client.get_run(tracking.run_id)
    assert (run.data.metrics, run.data.tags["alarms"]) == ({"reward/reward": 0.25}, "1")


def test_an_interrupted_night_goes_on_in_its_run(home: Home) -> None:
    first = opened(home)
    first.log_round(1, {"reward": 0.25})
    first.close_run("KILLED")
    again = opened(home)
    assert again.run_id == first.run_id
    again.log_round(1, {"reward": 0.25})  # a round that was committed and not yet logged
    again.log_round(2, {"reward": 0.5})
    run = again.client.get_run(again.run_id)
    assert (run.info.status, run.data.metrics["reward/reward"]) == ("RUNNING", 0.5)
    again.close_run("FINISHED")
    runs = again.client.search_runs([again.experiment_id])
    assert [(run.info.run_id, run.info.status) for run in runs] == [(first.run_id, "FINISHED")]


def test_a_run_that_is_gone_is_replaced(home: Home) -> None:
    (home.night("2026-11-20") / RUN_FILE).write_text("0123456789abcdef0123456789abcdef")
    tracking = opened(home)
    assert (home.night("2026-11-20") / RUN_FILE).read_text() == tracking.run_id
    assert tracking.client.get_run(tracking.run_id).info.status == "RUNNING"


def test_which_mlflow_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, config = Home(tmp_path), load_night(STARTER)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(home, config) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere:5000")
    assert tracking_uri(home, config) == "http://elsewhere:5000"
    configured = load_night(STARTER, ["tracking.tracking_uri=http://here:5000"])
    assert tracking_uri(home, configured) == "http://here:5000"
