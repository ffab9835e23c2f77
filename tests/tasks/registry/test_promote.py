"""After the decision: three registered versions with their accuracies, and the winner under `daytime`."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from conf.storage.locks import alias_lock
from flows.commands.promote import promote_version
from models.checkpoint import DamagedCheckpointError
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, Registry
from tasks.registry.promote import DRY_RUN, OUTCOME, accuracy_of, intervals_of, promote
from tasks.stage import Artifact
from tasks.tracking import Tracking
from tests.tasks.night_folder import TARGET, write_exam
from tests.tasks.registry.test_interrupted_registry import forget_moves, interrupted_at_each_call
from tests.tasks.registry.test_mlflow_registry import make_checkpoint

WHO = ("champion", "distilled", "candidate")


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return write_exam(tmp_path_factory.mktemp("nights") / "2026-11-20", "") | {"target": TARGET}


class Morning:
    """A home in which the exam is over."""

    def __init__(self, home: Home, found: dict[str, Any]) -> None:
        self.home, self.tracking = home, Tracking(home, load_night(STARTER))
        self.registry = Registry(self.tracking.client, "student")
        self.sitters: dict[str, Path] = {}
        parent = None
        for who in WHO:
            self.sitters[who] = make_checkpoint(home.checkpoints, who, parent)
            parent = self.sitters[who].name
        self.decide(found)

    def decide(self, found: dict[str, Any], date: str = "2026-11-20") -> None:
        self.night, self.found = self.home.night(date), found
        (self.night / "decide").mkdir(parents=True)
        (self.night / "decide" / "decision.json").write_text(json.dumps(found))
        self.tracking.open_run(self.night, load_night(STARTER), {})

    def promote(self) -> dict[str, Any]:
        decision = Artifact(folder=self.night / "decide", digest="")
        return promote.fn(decision, self.sitters, self.home, self.tracking, "student")

    def serving(self) -> tuple[str | None, str | None]:
        """Who is behind `daytime`, and who behind `previous`."""
        by_digest = {checkpoint.name: who for who, checkpoint in self.sitters.items()}
        found = [self.registry.named(alias) for alias in (DAYTIME, PREVIOUS)]
        return found[0] and by_digest[found[0].digest], found[1] and by_digest[found[1].digest]


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
    assert [version.role for version in versions] == list(WHO)
    assert [version.digest for version in versions] == [morning.sitters[who].name for who in WHO]
    assert versions[1].parent == versions[0].digest
    for version in versions:
        assert version.accuracy == pytest.approx(accuracy_of(exam, version.role)[TARGET], abs=1e-4)
    morning.promote()
    assert morning.registry.versions() == versions


def test_the_accuracies_can_be_compared_in_mlflow(
    make_morning: Callable[[bool], Morning], exam: dict[str, Any]
) -> None:
    morning = make_morning(False)
    morning.promote()
    models = morning.tracking.client.search_logged_models([morning.tracking.experiment_id])
    found = {model.name.split("-")[0]: {m.key: m.value for m in model.metrics or []} for model in models}
    assert found == {
        who: {f"exam/{part}": pytest.approx(value) for part, value in accuracy_of(exam, who).items()} for who in WHO
    }


def test_a_loser_does_not_serve(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(False)
    morning.promote()
    assert morning.serving() == ("champion", None)
    morning.promote()
    assert morning.serving() == ("champion", None)


def test_the_night_after(make_morning: Callable[[bool], Morning], exam: dict[str, Any]) -> None:
    """The winner of the first night is the champion of the second, keeps its version, and stays."""
    morning = make_morning(True)
    morning.promote()
    first = morning.sitters["candidate"]
    second = make_checkpoint(morning.home.checkpoints, "second night", first.name)
    morning.sitters = {"champion": first, "distilled": first, "candidate": second}
    morning.decide(exam | {"promote": False}, "2026-11-21")
    morning.promote()
    assert [version.digest for version in morning.registry.versions()][3:] == [second.name]
    serving = morning.registry.named(DAYTIME)
    assert serving is not None
    assert serving.digest == first.name


def test_whose_accuracy_is_whose(exam: dict[str, Any]) -> None:
    compared = exam["comparisons"]
    assert intervals_of(exam, "champion")[TARGET] == compared["candidate"][TARGET]["before"]
    assert intervals_of(exam, "distilled")[TARGET] == compared["distilled"][TARGET]["after"]
    assert intervals_of(exam, "candidate")[TARGET] == compared["candidate"][TARGET]["after"]
    assert accuracy_of(exam, "champion")[TARGET] < accuracy_of(exam, "distilled")[TARGET] < 0.6


def test_a_night_that_was_overtaken_displaces_nobody(make_morning: Callable[[bool], Morning]) -> None:
    """It was interrupted after its exam; meanwhile another night's winner was promoted."""
    morning = make_morning(True)
    newer = make_registered(morning, "newer")
    morning.registry.promote(newer)
    carried_out = morning.promote()
    assert (carried_out["promote"], carried_out["reasons"][:-1]) == (False, morning.found["reasons"])
    assert f"version {newer} was promoted meanwhile" in carried_out["reasons"][-1]
    serving = morning.registry.named(DAYTIME)
    assert serving is not None
    assert serving.version == newer
    assert morning.promote() == carried_out


def make_registered(morning: Morning, text: str) -> str:
    checkpoint = make_checkpoint(morning.home.checkpoints, text)
    tags = {"role": "candidate", "night": "2026-11-21", "parent": "", "accuracy": "0.9"}
    tracking = morning.tracking
    return morning.registry.register(checkpoint, tracking.run_id, tracking.experiment_id, tags, {}).version


def test_killed_after_the_aliases_were_moved_it_comes_to_the_same(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(True)
    first = morning.promote()
    (morning.night / OUTCOME).unlink()
    assert morning.promote() == first
    assert morning.serving() == ("candidate", "champion")


def test_a_promotion_is_not_repeated_after_the_owner_went_back(make_morning: Callable[[bool], Morning]) -> None:
    """The night was killed between promotion and report, and gone on with after a rollback."""
    morning = make_morning(True)
    morning.promote()
    morning.registry.rollback()
    carried_out = morning.promote()
    assert carried_out["promote"]
    assert carried_out["serving"] == morning.sitters["champion"].name
    assert morning.serving() == ("champion", "candidate")


@pytest.mark.parametrize("owner_goes_back", [False, True])
def test_a_promotion_that_is_killed_at_any_call_is_carried_out_once(
    make_morning: Callable[[bool], Morning], owner_goes_back: bool
) -> None:
    """Also where its owner goes back from it before the night goes on: what the owner moved last, stands."""
    morning, gone_back = make_morning(True), dict[str, bool]()
    morning.promote()
    begin_anew(morning)
    for stopped in interrupted_at_each_call(morning.tracking, morning.promote):
        gone_back[stopped] = owner_goes_back and morning.serving()[0] == "candidate"
        if gone_back[stopped]:
            morning.registry.rollback()
        carried_out = morning.promote()
        assert (carried_out["promote"], carried_out["reasons"]) == (True, morning.found["reasons"])
        assert morning.serving() == (("champion", "candidate") if gone_back[stopped] else ("candidate", "champion"))
        moved = [move.by for move in morning.registry.moves()]
        assert moved == ["night 2026-11-20"] * 2 + ["rollback"] * gone_back[stopped], stopped
        begin_anew(morning)
    assert gone_back["set_model_version_tag"] == gone_back["delete_registered_model_tag"] == owner_goes_back


def begin_anew(morning: Morning) -> None:
    (morning.night / OUTCOME).unlink()
    forget_moves(morning.registry)


def test_no_alias_ever_names_a_damaged_checkpoint(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(True)
    weights = morning.sitters["candidate"] / "model.safetensors"
    weights.write_bytes(bytes([weights.read_bytes()[0] ^ 1]) + weights.read_bytes()[1:])
    with pytest.raises(
        DamagedCheckpointError, match=f"{weights.parent.name}: it was changed or damaged; the same command"
    ):
        morning.promote()
    assert morning.registry.versions() == []


def test_a_dry_run_decides_registers_and_moves_nothing(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(True)
    (morning.night / DRY_RUN).touch()
    carried_out = morning.promote()
    assert (carried_out["promote"], carried_out["reasons"][:-1]) == (False, morning.found["reasons"])
    assert (carried_out["serving"], carried_out["withheld"][:23]) == (None, "nightschool promote 3 -")
    assert carried_out["reasons"][-1] == (
        "A dry run: no alias was moved. The candidate has earned its promotion, which "
        f"`nightschool promote 3 --config {morning.night}/config.yaml` carries out."
    )
    assert [version.role for version in morning.registry.versions()] == list(WHO)
    assert morning.serving() == (None, None)
    assert morning.promote() == carried_out
    assert promote_version(morning.home, morning.registry, "3")  # there is a way back, to the champion of that night
    assert morning.serving() == ("candidate", "champion")


def test_after_two_dry_runs_there_is_a_way_back(make_morning: Callable[[bool], Morning], exam: dict[str, Any]) -> None:
    """Both nights began with the same student, whose version keeps the date of the first."""
    morning = make_morning(True)
    (morning.night / DRY_RUN).touch()
    morning.promote()
    morning.sitters["candidate"] = make_checkpoint(morning.home.checkpoints, "second night")
    morning.decide(exam | {"promote": True}, "2026-11-21")
    (morning.night / DRY_RUN).touch()
    assert morning.promote()["withheld"].startswith("nightschool promote 4 ")
    assert promote_version(morning.home, morning.registry, "4")
    assert morning.serving() == ("candidate", "champion")


def test_a_dry_run_without_a_winner_names_no_command(make_morning: Callable[[bool], Morning]) -> None:
    morning = make_morning(False)
    (morning.night / DRY_RUN).touch()
    assert morning.promote()["reasons"][-1] == "A dry run: no alias was moved."


def test_a_promotion_by_hand_and_one_by_a_night_do_not_meet(make_morning: Callable[[bool], Morning]) -> None:
    """The owner's command holds the aliases when the night comes to move them: it waits, and then displaces nobody."""
    morning, found = make_morning(True), dict[str, Any]()
    with alias_lock(morning.home):
        night = threading.Thread(target=lambda: found.update(morning.promote()))
        night.start()
        while len(morning.registry.versions()) < len(WHO):
            time.sleep(0.05)
        night.join(1.0)  # it could have moved them by now
        newer = make_registered(morning, "newer")
        morning.registry.promote(newer)
    night.join()
    assert f"version {newer} was promoted meanwhile" in found["reasons"][-1]
    serving = morning.registry.named(DAYTIME)
    assert serving is not None
    assert serving.version == newer
