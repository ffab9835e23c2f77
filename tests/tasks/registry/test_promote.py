"""After the decision: the registered versions with their accuracies, and the winner under `daytime`."""

import json
import threading
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from conf.storage.locks import alias_lock
from flows.commands.home.promote import promote_version
from models.hf.checkpoint import DamagedCheckpointError
from tasks.monitoring.tracking import Tracking
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, REWARD_MODEL, ROLLBACK, Registry
from tasks.registry.promote import NO_PROMOTE, OUTCOME, intervals_of, promote
from tasks.stage import Artifact
from tests.damage import flip_a_bit
from tests.tasks.doubles.night import TARGET, write_exam
from tests.tasks.doubles.registry import ROLES, forget_moves, interrupted_at_each_call, make_checkpoint, make_models
from tests.tasks.doubles.tables import write_stage
from tests.waiting import awaited


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return write_exam(tmp_path_factory.mktemp("nights") / "2026-11-20", whole=True)


class Morning:
    """A home in which the exam is over."""

    def __init__(self, home: Home, decision: dict[str, Any]) -> None:
        self.home, self.tracking = home, Tracking(home, load_night(STARTER))
        self.registry = Registry(self.tracking.client, "student")
        self.checkpoints = make_models(home.checkpoints)
        self.decide(decision)

    def decide(self, decision: dict[str, Any], date: str = "2026-11-20", dry: bool = False) -> None:
        self.night, self.decision = self.home.night(date), decision
        (self.night / "decide").mkdir(parents=True)
        (self.night / "decide" / "decision.json").write_text(json.dumps(decision))
        self.tracking.open_run(self.night, load_night(STARTER), {})
        if dry:
            (self.night / NO_PROMOTE).touch()

    def promote(self) -> dict[str, Any]:
        decision = Artifact(folder=self.night / "decide", digest="")
        return promote.fn(decision, self.checkpoints, self.home, self.tracking, "student")

    def register_newer(self) -> str:
        checkpoint = make_checkpoint(self.home.checkpoints, "newer")
        tags = {"role": "newer", "night": "2026-11-21", "parent": "", "accuracy": "0.9"}
        run, experiment = self.tracking.run_id, self.tracking.experiment_id
        return self.registry.register(checkpoint, run, experiment, tags, {}).version

    def serving(self) -> tuple[str | None, str | None]:
        """The roles behind `daytime` and `previous`."""
        daytime, previous = (self.registry.named(alias) for alias in (DAYTIME, PREVIOUS))
        return daytime and daytime.role, previous and previous.role


@pytest.fixture
def make_morning(home_with_mlflow: Callable[[str], Home], exam: dict[str, Any]) -> Callable[[bool], Morning]:
    return lambda promoted: Morning(home_with_mlflow("school"), exam | {"promote": promoted})


def test_the_winner_serves_and_twice_changes_nothing(
    make_morning: Callable[[bool], Morning], exam: dict[str, Any]
) -> None:
    morning = make_morning(True)
    morning.promote()
    assert morning.serving() == ("candidate", "champion")
    versions = morning.registry.versions()
    assert [(version.role, version.digest) for version in versions] == [
        (role, morning.checkpoints[role].name) for role in ROLES
    ]
    assert versions[1].parent == versions[0].digest
    for version in versions:
        accuracies = {part: interval["accuracy"] for part, interval in intervals_of(exam, version.role).items()}
        assert version.accuracy == pytest.approx(accuracies[TARGET], abs=1e-4)
        run = morning.tracking.client.get_model_version("student", version.version).run_id or ""
        metrics = {f"exam/{part}": pytest.approx(value) for part, value in accuracies.items()}
        assert morning.tracking.client.get_run(run).data.metrics == metrics
    morning.promote()
    assert morning.registry.versions() == versions


def test_a_part_may_have_a_name_that_mlflow_refuses(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(True)
    file = morning.night / "decide" / "decision.json"
    file.write_text(file.read_text().replace("arithmetic-4", "ants (hard)"))
    morning.promote()
    run = morning.tracking.client.get_model_version("student", "1").run_id or ""
    assert "exam/ants _hard_" in morning.tracking.client.get_run(run).data.metrics


def test_a_reward_model_is_registered_beside_them(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(True)
    judge = make_checkpoint(morning.home.checkpoints, "judge", morning.checkpoints["champion"].name)
    outcome = {"serves": True, "checkpoint": judge.name, "picks": 120, "held_out": 24}
    write_stage(morning.night / "fit_reward_model", outcome=outcome)
    for _ in range(2):
        morning.promote()
        (morning.night / OUTCOME).unlink()
    (version,) = morning.registry.reward_models.versions()
    assert (version.role, version.digest, version.night) == (REWARD_MODEL, judge.name, "2026-11-20")
    client = morning.tracking.client
    run = client.get_model_version("student-reward", version.version).run_id or ""
    assert client.get_run(run).data.metrics["reward_model/held_out"] == 24
    assert len(morning.registry.versions()) == len(ROLES)


def test_a_loser_does_not_serve(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(False)
    (morning.night / NO_PROMOTE).touch()
    assert morning.promote()["reasons"][-1] == "--no-promote: no alias was moved."  # and no command to promote it
    (morning.night / NO_PROMOTE).unlink()
    (morning.night / OUTCOME).unlink()
    for _ in range(2):
        morning.promote()
        assert morning.serving() == ("champion", None)


def test_a_night_does_not_displace_what_a_newer_one_promoted(make_morning: Callable[[bool], Morning]) -> None:
    """It was interrupted after its exam; meanwhile another night's winner was promoted."""
    morning = make_morning(True)
    newer = morning.register_newer()
    morning.registry.promote(newer)
    carried_out = morning.promote()
    assert (carried_out["promote"], carried_out["reasons"][:-1]) == (False, morning.decision["reasons"])
    assert carried_out["reasons"][-1].startswith(f"Version {newer} was promoted after this exam's champion was chosen")
    assert morning.serving()[0] == "newer"
    assert morning.promote() == carried_out


@pytest.mark.parametrize("owner_goes_back", [pytest.param(False, marks=pytest.mark.full), True])
@pytest.mark.slow
def test_a_promotion_that_is_killed_at_any_call_is_carried_out_once(
    make_morning: Callable[[bool], Morning], owner_goes_back: bool
) -> None:
    """Also where its owner goes back from it before the night goes on: what the owner moved last, stands."""
    morning, gone_back = make_morning(True), list[bool]()
    morning.promote()
    begin_anew(morning)
    for stopped in chain(interrupted_at_each_call(morning.tracking, morning.promote), [OUTCOME]):
        (morning.night / OUTCOME).unlink(missing_ok=True)
        gone_back.append(owner_goes_back and [move.version for move in morning.registry.moves()] == ["1", "3"])
        if gone_back[-1]:
            morning.registry.promote("1", ROLLBACK)
        carried_out = morning.promote()
        assert (carried_out["promote"], carried_out["reasons"]) == (True, morning.decision["reasons"])
        expected = ("champion", "candidate") if gone_back[-1] else ("candidate", "champion")
        assert morning.serving() == expected
        assert carried_out["serving"] == morning.checkpoints[expected[0]].name
        moved = [move.by for move in morning.registry.moves()]
        assert moved == ["night 2026-11-20"] * 2 + ["rollback"] * gone_back[-1], stopped
        begin_anew(morning)
    assert sum(gone_back) == 3 * owner_goes_back  # before either alias followed the log, and after both


def begin_anew(morning: Morning) -> None:
    (morning.night / OUTCOME).unlink()
    forget_moves(morning.registry)


def test_no_alias_ever_names_a_damaged_checkpoint(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(True)
    flip_a_bit(morning.checkpoints["candidate"] / "model.safetensors")
    with pytest.raises(DamagedCheckpointError, match=morning.checkpoints["candidate"].name):
        morning.promote()
    assert morning.registry.versions() == []


def test_nights_that_promote_nothing_register_move_nothing_and_leave_a_way_back(
    make_morning: Callable[[bool], Morning], exam: dict[str, Any]
) -> None:
    """Two nights began with the same champion, whose version keeps the date of the first."""
    morning = make_morning(True)
    (morning.night / NO_PROMOTE).touch()
    carried_out = morning.promote()
    assert (carried_out["promote"], carried_out["serving"]) == (False, None)
    assert carried_out["withheld"] == f"nightschool promote 3 --config {morning.night}/config.yaml"
    assert carried_out["reasons"] == [
        *morning.decision["reasons"],
        f"--no-promote: no alias was moved. The candidate has earned its promotion: `{carried_out['withheld']}`.",
    ]
    assert [version.role for version in morning.registry.versions()] == list(ROLES)
    assert morning.promote() == carried_out
    morning.checkpoints["candidate"] = make_checkpoint(morning.home.checkpoints, "second night")
    morning.decide(exam | {"promote": True}, "2026-11-21", dry=True)
    assert morning.promote()["withheld"].startswith("nightschool promote 4 ")
    assert morning.serving() == (None, None)
    assert promote_version(morning.home, morning.registry, "4")
    assert morning.serving() == ("candidate", "champion")


def test_a_night_waits_for_the_owner_who_is_moving_the_aliases(make_morning: Callable[[bool], Morning]) -> None:
    """The night sees what was moved meanwhile, and displaces nothing."""
    morning, carried_out = make_morning(True), dict[str, Any]()
    with alias_lock(morning.home):
        night = threading.Thread(target=lambda: carried_out.update(morning.promote()))
        night.start()
        awaited(lambda: len(morning.registry.versions()) == len(ROLES), "registered versions")
        night.join(1.0)  # it could have moved them by now
        newer = morning.register_newer()
        morning.registry.promote(newer)
    night.join()
    assert carried_out["reasons"][-1].startswith(f"Version {newer} was promoted after")
    assert morning.serving()[0] == "newer"
