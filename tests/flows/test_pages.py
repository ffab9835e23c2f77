"""The page of MLflow that a person is sent to: the night's runs, seen as trainings."""

from collections.abc import Callable
from pathlib import Path

from conf.home import Home
from conf.load import STARTER, load_night
from flows.pages import experiment_page
from tasks.tracking import Tracking

ALL = "#/experiments?workflowType=machine_learning"


def test_a_home_without_a_night_has_no_database_made_for_it(tmp_path: Path) -> None:
    assert experiment_page(Home(tmp_path)) == ALL
    assert list(tmp_path.iterdir()) == []


def test_the_nights_own_experiment_or_of_several_all(home_with_mlflow: Callable[[str], Home]) -> None:
    home = home_with_mlflow("school")
    assert experiment_page(home) == ALL
    tracking = Tracking(home, load_night(STARTER))
    assert experiment_page(home) == f"#/experiments/{tracking.experiment_id}?workflowType=machine_learning"
    Tracking(home, load_night(STARTER, ["tracking.experiment=other"]))
    assert experiment_page(home) == ALL
