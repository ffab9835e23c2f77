"""Whose a version is, where homes share a server: nobody prunes another one's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from conf.storage.home import Home
from tasks.registry.mlflow_registry import Registry
from tasks.registry.prune import plan
from tasks.tracking import Tracking
from tests.tasks.registry.test_prune import DATES, School, names


def test_a_version_of_another_home_on_the_same_server_stays(home_with_mlflow: Callable[[str], Home]) -> None:
    school = School(home_with_mlflow("school"))
    others, own = school.version("another home's", "2026-11-10"), school.version("own", "2026-11-16")
    school.night("2026-11-16")
    for checkpoint in (others, own):
        for file in checkpoint.iterdir():
            file.unlink()
        checkpoint.rmdir()
    assert school.prune() == [f"version 2 ({own.name})"]  # its weights were gone already
    assert school.registered() == [others.name]


def test_homes_that_share_a_server_and_dates_prune_their_own(
    home_with_mlflow: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where MLflow puts the artifacts of a database that is not the home's
    server = home_with_mlflow("server").database
    one, two = School(Home(tmp_path / "one"), server), School(Home(tmp_path / "two"), server)
    losers = [school.version(f"{school.home.root.name}'s", DATES[0]) for school in (one, two)]
    own, both = two.version("registered by the other", DATES[0]), one.checkpoint("registered by the other")
    assert own.name == both.name
    assert one.prune() == [f"version 1 ({losers[0].name})"]
    assert one.registered() == [losers[1].name, own.name]
    assert one.on_disk() == names(own)


def test_a_home_that_was_moved_prunes_its_own_database(home_with_mlflow: Callable[[str], Home], tmp_path: Path) -> None:
    school = School(home_with_mlflow("school"))
    loser = school.version("a loser", DATES[0])
    school.home.root.rename(tmp_path / "moved")
    home = Home(tmp_path / "moved")
    registry = Registry(Tracking(home, school.config).client, "starter")
    assert [item.what for item in plan(home, 2, registry).goes] == [f"version 1 ({loser.name})"]
