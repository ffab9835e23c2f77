"""The registry on a real MLflow database: versions, aliases, promotion, and kills between any two calls."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from conf.storage.home import Home
from tasks.registry.mlflow_registry import ROLLBACK, Registry
from tests.tasks.doubles.registry import School, forget_moves, interrupted_at_each_call


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home]) -> School:
    return School(home_with_mlflow("school with spaces and ü"))


def test_three_checkpoints_become_three_versions(school: School) -> None:
    for number, role in enumerate(("champion", "distilled", "candidate")):
        version = school.register(number, role, accuracy=0.1 * number)
        assert version.version == str(number + 1)
        assert school.register(number, "champion", 0.75) == version  # the same content is registered once
    versions = school.registry.versions()
    assert [version.digest for version in versions] == [checkpoint.name for checkpoint in school.checkpoints]
    assert [version.role for version in versions] == ["champion", "distilled", "candidate"]
    assert (versions[2].parent, versions[2].night, versions[2].accuracy) == ("cafe42", "2026-11-20", 0.2)
    assert not any(version.promoted or version.aliases for version in versions)


def test_mlflow_compares_the_exams_of_two_versions(school: School) -> None:
    """Its page shows the metrics of the two versions' runs: they are nested in the night's run, one each."""
    client, compared = school.tracking.client, {}
    for number, accuracy in ((0, 0.25), (1, 0.75)):
        version = school.register(number, accuracy=accuracy).version
        shown = client.get_model_version("student", version)
        run = client.get_run(shown.run_id or "")
        (model,) = client.search_logged_models([run.info.experiment_id], f"source_run_id = '{run.info.run_id}'")
        assert (run.info.status, run.data.tags["mlflow.parentRunId"]) == ("FINISHED", school.tracking.run_id)
        assert run.info.run_name == model.name == f"candidate-{school.checkpoints[number].name[:8]}"
        assert {metric.key: metric.value for metric in model.metrics or []} == run.data.metrics
        assert shown.description == run.data.tags["mlflow.note.content"]
        compared[version] = run.data.metrics
    assert compared == {"1": {"exam/arithmetic-1-2": 0.25}, "2": {"exam/arithmetic-1-2": 0.75}}
    assert client.get_run(school.tracking.run_id).data.metrics == {}


def test_a_promotion_moves_the_aliases_and_is_noted_with_its_time_and_who_moved_them(school: School) -> None:
    one, two = school.register(0).version, school.register(1).version
    school.registry.promote(one, "night 2026-11-20")
    assert school.aliases() == (one, None)
    for by in ("night 2026-11-20", "promote"):  # the second time, nothing moves
        school.registry.promote(two, by)
        assert school.aliases() == (two, one)
        assert [version.promoted for version in school.registry.versions()] == [True, True]
    school.registry.promote(one, ROLLBACK)
    assert school.aliases() == (one, two)
    school.registry.promote(two)
    moves = school.registry.moves()
    assert [(move.number, move.version, move.by, move.by_hand) for move in moves] == [
        (1, "1", "night 2026-11-20", False),
        (2, "2", "night 2026-11-20", False),
        (3, "1", "rollback", True),
        (4, "2", "promote", True),
    ]
    times = [datetime.fromisoformat(move.at) for move in moves]
    assert times == sorted(times)
    assert all(abs(datetime.now(UTC) - at) < timedelta(minutes=10) for at in times)
    school.registry.remove("2")
    assert [move.number for move in school.registry.moves()] == [1, 3]


def test_models_and_versions_of_others_are_not_seen(school: School) -> None:
    """A version without a digest would otherwise name the folder of all checkpoints."""
    assert school.registry.versions() == []
    assert school.aliases() == (None, None)
    school.register(0)
    for name in ("studen", "student-2"):
        assert Registry(school.tracking.client, name).versions() == []
    school.tracking.client.create_model_version("student", source=school.checkpoints[1].as_uri())
    assert [version.version for version in school.registry.versions()] == ["1"]


def test_a_version_that_is_removed_leaves_its_run(school: School) -> None:
    school.register(0)
    run = school.tracking.client.get_model_version("student", "1").run_id or ""
    school.registry.remove("1")
    assert school.registry.versions() == []
    assert school.tracking.client.get_run(run).data.metrics == {"exam/arithmetic-1-2": 0.5}
    assert school.register(0).version == "2"


def test_a_registration_that_is_interrupted_at_any_call_is_made_once(school: School) -> None:
    stopped = list(interrupted_at_each_call(school.registry, lambda: school.register(0)))
    assert {"create_registered_model", "create_run", "create_model_version"} <= set(stopped)
    assert [version.version for version in school.registry.versions()] == ["1"]
    experiment = [school.tracking.experiment_id]
    assert len(school.tracking.client.search_logged_models(experiment)) == 1
    assert len(school.tracking.client.search_runs(experiment)) == 2  # the night's and the checkpoint's


def test_a_promotion_that_is_interrupted_at_any_call_loses_no_version(school: School) -> None:
    """The old version serves, or the new one; once the move is finished, predecessor and move are known."""
    one, two = school.register(0), school.register(1)
    school.registry.promote(one.version)
    seen = []
    for stopped in interrupted_at_each_call(school.registry, lambda: school.registry.promote(two.version)):
        seen.append((stopped, school.aliases()))
        school.registry.finish_alias_move()
        moves = [move.version for move in school.registry.moves()]
        assert (school.aliases(), moves) in (((one.version, None), ["1"]), ((two.version, one.version), ["1", "2"]))
        forget_moves(school.registry)
        school.registry.promote(one.version)
    assert seen == [
        ("set_model_version_tag", ("1", None)),
        ("set_model_version_tag", ("1", None)),
        ("set_registered_model_alias", ("1", None)),
        ("set_registered_model_alias", ("1", "1")),
    ]
    assert school.aliases() == (two.version, one.version)
