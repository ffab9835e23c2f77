"""Pruning removes what no promotion chose and no night needs, and nothing else: on a real registry and real folders."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from conf.storage.home import Home
from tasks.evaluation.stored_answers import save_answers
from tasks.monitoring.tracking import RUN_FILE
from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS, REWARD_MODEL, Registry
from tasks.registry.prune import bytes_freed, plan, prune, remove
from tasks.stage import commit
from tests.tasks.doubles.exam import ANSWERS, inputs_of
from tests.tasks.doubles.registry import DATES
from tests.tasks.doubles.registry import PrunedSchool as School


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home]) -> School:
    return School(home_with_mlflow("school"))


def names(*checkpoints: Path) -> set[str]:
    return {checkpoint.name for checkpoint in checkpoints}


def test_champions_and_reward_models_of_the_newest_nights_stay(school: School) -> None:
    """In a home of dry runs no alias names the champion; but the newest nights compared with it."""
    champion, loser = school.version("champion", DATES[0]), school.version("a loser", DATES[0])
    fitted = {date: school.version(f"reward of {date}", date, role=REWARD_MODEL) for date in DATES[1:3]}
    for date, checkpoint in fitted.items():
        (school.night(date) / "champion.txt").write_text(champion.name)
        (school.home.night(date) / "fit_reward_model").mkdir()
        (school.home.night(date) / "fit_reward_model" / "checkpoint.txt").write_text(checkpoint.name)
    planned = plan(school.home, 2, school.registry)
    assert [item.what for item in planned.goes] == [
        f"version 2 ({loser.name})",
        f"reward model 1 ({fitted[DATES[1]].name})",
    ]
    assert planned.stays == {
        champion.name: f"the champion of {DATES[2]}, one of the newest nights",
        fitted[DATES[2]].name: f"the reward model of {DATES[2]}, one of the newest nights",
    }
    school.prune()
    assert school.registered("starter-reward") == [fitted[DATES[2]].name]
    assert not fitted[DATES[1]].exists()


def test_old_losers_go_and_all_others_stay(school: School) -> None:
    first = school.version("promoted once", DATES[0], promote=True)
    before = school.version("the one before", DATES[0], promote=True)
    loser, second = school.version("a loser", DATES[0]), school.version("another", DATES[1])
    recent = school.version("recent", DATES[2])
    serving = school.version("serving", DATES[1], promote=True)
    named = school.version("named by hand", DATES[0])
    school.tracking.client.set_registered_model_alias("starter", "mine", "7")
    assert plan(school.home, 4, school.registry).goes == plan(school.home, 5, school.registry).goes == ()
    planned = plan(school.home, 2, school.registry)
    assert [(item.version, item.what) for item in planned.goes] == [
        ("3", f"version 3 ({loser.name})"),
        ("4", f"version 4 ({second.name})"),
    ]
    assert planned.goes[0].why == "never promoted, and the night 2026-11-17 is older than the newest 2"
    assert planned.goes[0].size == bytes_freed(loser) == sum(file.stat().st_size for file in loser.iterdir())
    assert planned.stays == {
        first.name: "it was promoted (version 1, the night 2026-11-17)",
        before.name: f"{PREVIOUS} (version 2)",
        recent.name: "the night 2026-11-19 is one of the newest (version 5)",
        serving.name: f"{DAYTIME} (version 6)",
        named.name: "mine (version 7)",
    }
    assert school.on_disk() == names(first, before, loser, second, recent, serving, named)  # to plan touches nothing
    assert school.prune() == [f"version 3 ({loser.name})", f"version 4 ({second.name})"]
    assert school.on_disk() == set(school.registered()) == names(first, before, recent, serving, named)
    assert school.prune() == []


def test_a_crash_between_entry_and_weights_leaves_weights_which_go_next_time(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    losers = [school.version(text, DATES[0]) for text in ("one", "two")]
    killed: list[str] = []

    def remove_and_die(version: str) -> None:
        school.tracking.client.delete_model_version("starter", version)
        killed.append(version)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(school.registry, "remove", remove_and_die)
        with pytest.raises(KeyboardInterrupt):
            school.prune()
    assert killed == ["1"]
    assert school.registered() == [losers[1].name]
    assert school.on_disk() == names(*losers)  # never an entry without weights
    assert school.prune() == [f"version 2 ({losers[1].name})", f"checkpoint {losers[0].name}"]
    assert school.on_disk() == set()


def test_what_an_unfinished_night_resumes_from_stays(school: School) -> None:
    champion = school.version("its champion", DATES[0])
    start = school.checkpoint("the last night's candidate, with which it begins")
    base = school.checkpoint("the base of its adapter")
    adapter = school.checkpoint("its adapter", base=base.name)
    state, distilled = school.checkpoint("its state's"), school.checkpoint("its lessons'")
    stray = school.checkpoint("nobody's")
    night = school.night("2026-11-16", finished=False)
    (night / "champion.txt").write_text(champion.name)
    (night / "start.json").write_text(json.dumps({"digest": start.name, "unpromoted": 1}))
    for place, checkpoint in (("distill", distilled), ("round-01/checkpoint", adapter)):
        (night / place).mkdir(parents=True)
        (night / place / "checkpoint.txt").write_text(checkpoint.name)
    for number, note in (("01", json.dumps({"checkpoint": state.name})), ("02", "damaged")):
        (night / "state" / f"round-{number}").mkdir(parents=True)
        (night / "state" / f"round-{number}" / "state.json").write_text(note)
    assert school.prune() == [f"checkpoint {stray.name}"]
    assert school.on_disk() == names(champion, start, base, adapter, state, distilled)
    assert school.registered() == [champion.name]
    stays = plan(school.home, 2, school.registry).stays
    assert stays[adapter.name] == "the night 2026-11-16 is unfinished: finish it, or remove its folder"
    assert stays[base.name] == f"it is the base of {adapter.name}"
    school.night("2026-11-16", finished=True)
    assert len(school.prune()) == 6
    assert school.on_disk() == set()


def test_another_model_of_the_home_prunes_its_own(school: School) -> None:
    own, others = school.version("own", DATES[0]), school.version("another's", DATES[0], model="gsm8k")
    shared = school.version("both's", DATES[0])
    school.version("both's", DATES[0], model="gsm8k", promote=True)
    assert school.prune() == [f"version 1 ({own.name})"]
    assert school.on_disk() == names(others, shared)
    assert school.registered("gsm8k") == [others.name, shared.name]
    assert school.registered() == [shared.name]
    prune.fn(school.home, 2, Registry(school.tracking.client, "gsm8k"))
    assert school.on_disk() == names(shared)


def test_weights_of_nights_in_another_mlflow_database_stay(school: School) -> None:
    """As with an empty database in the place of the one that knows what serves."""
    champion = school.checkpoint("the champion of another database")
    school.night("2026-11-16", run="0123456789abcdef0123456789abcdef", digests=(champion.name,))
    assert school.prune() == []
    assert plan(school.home, 2, school.registry).stays == {
        champion.name: "the night 2026-11-16 is recorded in another MLflow database"
    }
    (school.home.night("2026-11-16") / RUN_FILE).unlink()
    assert school.prune() == []
    school.night("2026-11-16", digests=(champion.name,))
    assert school.prune() == [f"checkpoint {champion.name}"]


def test_a_version_promoted_between_plan_and_removal_stays(school: School) -> None:
    loser = school.version("a loser, yet", DATES[0])
    planned = plan(school.home, 2, school.registry)
    assert len(planned.goes) == 1
    school.registry.promote("1")
    remove(school.home, planned)
    assert school.on_disk() == {*school.registered()} == names(loser)


def test_a_version_removed_between_plan_and_removal_costs_nothing_else(school: School) -> None:
    school.version("a loser", DATES[0])
    planned = plan(school.home, 2, school.registry)
    school.registry.remove("1")
    remove(school.home, planned)
    assert school.on_disk() == {*school.registered()} == set()


def test_a_draft_goes_and_other_folders_do_not(school: School, tmp_path: Path) -> None:
    for name in ("draft", "my-model", "0123456789abcdef", "lost+found"):
        (school.home.checkpoints / name).mkdir(parents=True)
        (school.home.checkpoints / name / "file").write_text("12345")
    os.link(school.home.checkpoints / "draft" / "file", tmp_path / "kept elsewhere")
    (school.home.checkpoints / "draft" / "own").write_text("123")
    (item,) = plan(school.home, 2, school.registry).goes
    assert item.size == 3  # the other file's bytes would not be free
    assert school.prune() == ["draft"]
    (tmp_path / "precious").mkdir()
    school.version("a loser", DATES[0])
    school.tracking.client.set_model_version_tag("starter", "1", "digest", "../../precious")
    school.prune()  # a hostile digest leads nowhere
    assert (tmp_path / "precious").is_dir()
    assert {"my-model", "0123456789abcdef", "lost+found"} <= school.on_disk()


SAMPLED = {
    *(f"round-01/{step}.parquet" for step in ("sample/rollouts", "score/scores", "credit/advantages")),
    *(f"round-01/refill-1/{step}.parquet" for step in ("sample/rollouts", "teacher/advantages", "propose/rollouts")),
    "round-01/play-1/episodes.json",
}


def write_round(folder: Path) -> None:
    others = ("select_prompts/prompts.parquet", "checkpoint/metrics.json", "../evaluate/candidate/evaluations.parquet")
    for name in (*SAMPLED, *(f"round-01/{other}" for other in others), "freeze_journal/words.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    commit(folder / "freeze_journal", "freeze_journal", {}, 0.1)


def test_old_nights_lose_what_their_rounds_sampled_and_nothing_else(school: School) -> None:
    other = school.night("2026-11-16")
    config = (other / "config.yaml").read_text()
    (other / "config.yaml").write_text(config.replace("name: starter", "name: gsm8k"))
    unfinished = school.night("2026-11-15", finished=False)
    folders = [*(school.home.night(date) for date in DATES), other, unfinished]
    for folder in folders:
        write_round(folder)
    before = {folder: {file for file in folder.rglob("*") if file.is_file()} for folder in folders}
    assert school.prune() == [f"rollouts of {DATES[0]}", f"rollouts of {DATES[1]}"]
    gone = {folder: before[folder] - {*folder.rglob("*")} for folder in folders}
    for folder in folders[2:]:
        assert gone[folder] == set()
    for folder in folders[:2]:
        assert {str(file.relative_to(folder)) for file in gone[folder]} == SAMPLED
    assert school.prune() == []


def test_stored_answers_go_with_their_checkpoint(school: School) -> None:
    loser, serving = school.version("a loser", DATES[0]), school.version("serving", DATES[0], promote=True)
    for checkpoint in (serving, loser, Path("elsewhere")):
        for longest in (64, 65):
            inputs = inputs_of(checkpoint=checkpoint, max_tokens=longest)
            save_answers(school.home.exams, inputs, ANSWERS, 1.0)
        if checkpoint == serving:
            kept = {folder.name for folder in school.home.exams.iterdir()}
    gone = school.prune()
    assert gone[0] == f"version 1 ({loser.name})"
    assert sorted(gone[1:]) == sorted([f"exam of {loser.name}", "exam of elsewhere"] * 2)
    assert {folder.name for folder in school.home.exams.iterdir()} == kept
    assert school.prune() == []


def test_homes_that_share_a_server_prune_their_own(
    home_with_mlflow: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where MLflow puts the artifacts of a database that is not the home's
    server = home_with_mlflow("server").database
    one, two = School(Home(tmp_path / "one"), server), School(Home(tmp_path / "two"), server)
    losers = [school.version(f"{school.home.root.name}'s", DATES[0]) for school in (one, two)]
    assert one.prune() == [f"version 1 ({losers[0].name})"]
    assert one.registered() == [losers[1].name]
    assert one.on_disk() == set()
