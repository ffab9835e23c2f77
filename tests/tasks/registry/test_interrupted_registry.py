"""Wherever a night or a command is killed while it writes the registry, whoever comes next makes it whole."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from mlflow import MlflowClient

from conf.storage.home import Home
from tasks.registry.mlflow_registry import DAYTIME, MOVING, PREVIOUS, SINCE, Registry
from tasks.tracking import Tracking
from tests.tasks.registry.test_mlflow_registry import School


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home]) -> School:
    return School(home_with_mlflow("school"))


class Interrupted:
    """The client of a night that is killed before the n-th call that writes."""

    def __init__(self, client: MlflowClient, calls: int) -> None:
        self.client, self.left, self.tracking_uri = client, calls, client.tracking_uri

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("create", "set", "delete", "finalize", "log")):
            if not self.left:
                raise KeyboardInterrupt(name)
            self.left -= 1
        return getattr(self.client, name)


def interrupted_at_each_call(caller: Registry | Tracking, what: Callable[[], object]) -> Iterator[str]:
    """Does it until it is through, one call more each time; yields the name of the call that it was stopped at."""
    client, calls = caller.client, 0
    while True:
        stand_in: Any = Interrupted(client, calls)
        caller.client = stand_in
        try:
            what()
            return
        except KeyboardInterrupt as stopped:
            name = str(stopped)
        finally:
            caller.client = client
        yield name
        calls += 1


def test_a_registration_that_is_interrupted_at_any_call_is_made_once(school: School) -> None:
    stopped = list(interrupted_at_each_call(school.registry, lambda: school.register(0)))
    assert {"create_registered_model", "create_logged_model", "finalize_logged_model"} <= set(stopped)
    assert "create_model_version" in stopped
    assert [version.version for version in school.registry.versions()] == ["1"]
    assert len(school.tracking.client.search_logged_models([school.tracking.experiment_id])) == 1


def forget_moves(registry: Registry) -> None:
    """Nobody serves, and nobody ever did."""
    for alias in (DAYTIME, PREVIOUS):
        registry.client.delete_registered_model_alias(registry.model, alias)
    for move in registry.moves():
        registry.client.delete_model_version_tag(registry.model, move.version, f"{SINCE}{move.at}")


def test_a_promotion_that_is_interrupted_at_any_call_loses_nobody(school: School) -> None:
    """Whoever served before serves, or the new one does; once it is settled the way back is known, and the move too."""
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    seen = []
    for stopped in interrupted_at_each_call(school.registry, lambda: school.registry.promote(two.version)):
        seen.append((stopped, school.aliases()))
        school.registry.settle()
        moves = [move.version for move in school.registry.moves()]
        assert (school.aliases(), moves) in (((one.version, None), ["1"]), ((two.version, one.version), ["1", "2"])), (
            stopped
        )
        forget_moves(school.registry)
        school.registry.promote(one.version)
    assert seen == [
        ("set_model_version_tag", ("1", None)),
        ("set_registered_model_tag", ("1", None)),
        ("set_registered_model_alias", ("1", None)),
        ("set_registered_model_alias", ("1", "1")),
        ("set_model_version_tag", ("2", "1")),
        ("delete_registered_model_tag", ("2", "1")),
    ]
    assert school.aliases() == (two.version, one.version)


def test_a_move_is_whole_however_often_finishing_it_is_interrupted(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    moves = {DAYTIME: two.version, PREVIOUS: one.version, "since": "2099-11-21T01:00:00.000Z", "by": "night 2099-11-20"}
    school.tracking.client.set_registered_model_tag("student", MOVING, json.dumps(moves))
    stopped = list(interrupted_at_each_call(school.registry, school.registry.settle))
    assert (len(stopped), stopped[-1]) == (4, "delete_registered_model_tag")
    assert school.aliases() == ("2", "1")
    assert [(move.version, move.by) for move in school.registry.moves()] == [
        ("1", "promote"),
        ("2", "night 2099-11-20"),
    ]
    assert not school.registry.settle()


def test_a_rollback_that_is_interrupted_at_any_call_keeps_the_way_back(school: School) -> None:
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    school.registry.promote(two.version)
    client = school.registry.client
    for calls in range(9):
        stand_in: Any = Interrupted(client, calls)
        school.registry.client = stand_in
        before = school.aliases()
        with suppress(KeyboardInterrupt):
            school.registry.rollback()
        school.registry.client = client
        school.registry.settle()
        assert school.aliases() in (before, before[::-1])
    assert set(school.aliases()) == {one.version, two.version}
