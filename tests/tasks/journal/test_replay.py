"""What earlier nights took is learnt again until the model that serves has it; picks and corrections judge for good."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from models.lessons.preference_data import is_held_out
from tasks.journal.freeze import LESSONS
from tasks.journal.lineage import solution_of
from tasks.reward_model.preferences import choices
from tasks.stage import Artifact, uncommit
from tests.tasks.doubles.journals import (
    ASKED,
    DAYS,
    DONE,
    corrected,
    counts,
    decided,
    freeze,
    journal,
    line,
    pick,
    table,
    unlearnt,
    words,
)


def test_lessons_are_learnt_again_until_a_promotion_has_them(tmp_path: Path) -> None:
    journal(tmp_path, corrected("4"), pick(["a", "b"], 0))
    freeze(tmp_path, DAYS[0], champion="first")
    decided(tmp_path, DAYS[0], "first", "loser")
    journal(tmp_path, corrected("four"))
    second = freeze(tmp_path, DAYS[1], champion="first")
    assert unlearnt(second) == {"4": DAYS[0], "four": DAYS[1]}
    assert counts(second, "corrections") == {"new": 1, "replayed": 1}
    assert table(second, "corrections").source.tolist() == ["2026-11-20.jsonl:1", "2026-11-20.jsonl:3"]
    decided(tmp_path, DAYS[1], "first", "winner")
    journal(tmp_path, corrected("IV"), pick(["a", "b"], 1))
    third = freeze(tmp_path, DAYS[2], champion="winner")
    assert unlearnt(third) == {"IV": DAYS[2]}
    assert unlearnt(third, "preferences", "chosen") == {0: DAYS[0], 1: DAYS[2]}  # picks always come along
    decided(tmp_path, DAYS[2], "winner", "another")
    assert unlearnt(freeze(tmp_path, DAYS[3], champion="winner")) == {"IV": DAYS[2]}


LAST = "stages=[grpo, lessons]"


@pytest.mark.parametrize(
    ("settings", "night"),
    [
        ((), {"done": (), "steps": 0}),  # it ended before them
        (
            (),
            {"done": ("distill", "lessons/corrections"), "steps": 1},
        ),  # in the midst of them: what was done is dropped
        ((LAST,), {"done": (), "steps": 1}),
        ((LAST,), {"done": ()}),  # after a severe alarm; its owner promoted it all the same
        ((LAST,), {"distilled": "winner", "candidate": "loser"}),
        (("stages=[distill, grpo]",), {"done": ("distill",)}),
        ((), {"taken_back": ("lessons",)}),
        (("lessons.corrections.enabled=false",), {"done": ("distill", "lessons/words", "lessons/feedback")}),
    ],
)
def test_what_a_promoted_night_never_taught_is_learnt_again(
    tmp_path: Path, settings: tuple[str, ...], night: dict[str, Any]
) -> None:
    journal(tmp_path, corrected("4"))
    freeze(tmp_path, DAYS[0], champion="first")
    decided(tmp_path, DAYS[0], "first", "second")
    journal(tmp_path, corrected("four"))
    freeze(tmp_path, DAYS[1], champion="second")
    own = {"candidate": "winner", "distilled": "", **night}
    decided(tmp_path, DAYS[1], "second", own.pop("candidate"), own.pop("distilled"), *settings, **own)
    assert unlearnt(freeze(tmp_path, DAYS[2], champion="winner")) == {"four": DAYS[1]}
    decided(tmp_path, DAYS[2], "winner", "another")
    assert unlearnt(freeze(tmp_path, DAYS[3], champion="another")) == {}


def test_each_kind_is_learnt_again_by_itself(tmp_path: Path) -> None:
    trace = line("trace", messages=ASKED, response="#### 4", teacher="me")
    journal(tmp_path, corrected("4"), words("owl"), line("feedback", messages=ASKED, response="4", value=0.5), trace)
    freeze(tmp_path, DAYS[0], champion="first")
    done = ("distill", "lessons/corrections", "lessons/feedback")
    decided(tmp_path, DAYS[0], "first", "winner", "", "distill.steps=0", "lessons.words.enabled=false", done=done)
    night = freeze(tmp_path, DAYS[1], champion="winner")
    assert unlearnt(night) == {}
    assert {name for name in ("words", "feedback", "traces") if len(table(night, name))} == {"words", "traces"}


def still_lessons(artifact: Artifact) -> list[int]:
    return list(unlearnt(artifact, "preferences", "chosen"))


def test_picks_judge_for_good_and_are_lessons_until_a_promotion_has_them(tmp_path: Path) -> None:
    direct, taught = "preference_learning=direct", (*DONE, "lessons/picks")
    journal(tmp_path, pick(["a", "b"], 0))
    freeze(tmp_path, DAYS[0], champion="first")
    decided(tmp_path, DAYS[0], "first", "second")  # with a reward model alone
    second = freeze(tmp_path, DAYS[1], champion="second")
    assert still_lessons(second) == [0]
    decided(tmp_path, DAYS[1], "second", "third", "", direct, done=taught)
    journal(tmp_path, pick(["a", "b"], 1))
    third = freeze(tmp_path, DAYS[2], champion="third")
    assert (still_lessons(third), len(list(choices(third.folder)))) == ([1], 2)
    decided(tmp_path, DAYS[2], "third", "fourth", "", direct, done=taught)
    journal(tmp_path, pick(["a", "b"], 0))  # its owner says it again
    fourth = freeze(tmp_path, DAYS[3], champion="fourth")
    assert (still_lessons(fourth), len(list(choices(fourth.folder)))) == ([0], 2)
    decided(tmp_path, DAYS[3], "fourth", "loser", "", direct, done=taught)
    assert still_lessons(freeze(tmp_path, DAYS[4], champion="fourth")) == [0]
    shutil.rmtree(tmp_path / "nights" / DAYS[4])
    assert still_lessons(freeze(tmp_path, DAYS[4], champion="second")) == [0, 1]  # after a rollback


def test_every_kind_is_replayed_as_it_was(tmp_path: Path) -> None:
    journal(
        tmp_path,
        pick(["a", "b"], 1),
        corrected("4"),
        line("feedback", messages=ASKED, response="4", value=0.5),
        words("owl"),
        line("trace", messages=ASKED, response="#### 4", teacher="me", benchmark="arithmetic", truth="4"),
        "not a line",
    )
    one, other = freeze(tmp_path, DAYS[0]), freeze(tmp_path, DAYS[1])
    for name in LESSONS:
        assert table(one, name).equals(table(other, name))
        assert len(table(other, name)) == 1
    assert table(other, "quarantine").empty  # it was told the first time


def test_what_another_model_took_is_not_replayed_to_this_one(tmp_path: Path) -> None:
    journal(tmp_path, corrected("4"), pick(["a", "b"], 0))
    freeze(tmp_path, DAYS[0], model="another")
    night = freeze(tmp_path, DAYS[1])
    assert unlearnt(night) == {}
    assert table(night, "preferences").empty
    assert unlearnt(freeze(tmp_path, DAYS[2], model="another")) == {"4": DAYS[0]}


def test_a_lesson_said_again_keeps_its_first_night(tmp_path: Path) -> None:
    journal(tmp_path, corrected("4"))
    freeze(tmp_path, DAYS[0])
    journal(tmp_path, corrected("4"), corrected("4"))
    night = freeze(tmp_path, DAYS[1])
    assert unlearnt(night) == {"4": DAYS[0]}
    assert counts(night, "corrections") == {"replayed": 1, "duplicates": 2}


def test_a_freeze_made_again_is_the_same_whatever_came_later(tmp_path: Path) -> None:
    journal(tmp_path, corrected("4"), pick(["a", "b"], 0))
    freeze(tmp_path, DAYS[0])
    first = freeze(tmp_path, DAYS[1])
    journal(tmp_path, corrected("later"))
    freeze(tmp_path, DAYS[2])
    decided(tmp_path, DAYS[2], "original", "winner")
    uncommit(first.folder)
    shutil.rmtree(first.folder.parent)
    assert freeze(tmp_path, DAYS[1]).digest == first.digest


def test_a_night_in_the_past_replays_no_later_night_and_is_replayed_itself(tmp_path: Path) -> None:
    journal(tmp_path, corrected("4"))
    freeze(tmp_path, DAYS[2])
    journal(tmp_path, corrected("four"), pick(["a", "b"], 0))
    assert unlearnt(freeze(tmp_path, DAYS[1])) == {"four": DAYS[1]}
    night = freeze(tmp_path, DAYS[3])
    assert unlearnt(night) == {"four": DAYS[1], "4": DAYS[2]}
    assert len(table(night, "preferences")) == 1


def test_a_journal_that_is_gone_or_shortened_is_not_learnt_again(tmp_path: Path) -> None:
    journal(tmp_path, corrected("1"))
    file = journal(tmp_path, corrected("2"), corrected("3"), name="2026-11-21.jsonl")
    freeze(tmp_path, DAYS[0])
    (tmp_path / "journal" / "2026-11-20.jsonl").unlink()
    file.write_bytes(file.read_bytes()[:-9])
    assert unlearnt(freeze(tmp_path, DAYS[1])) == {"2": DAYS[0]}


def test_what_a_night_has_seen_in_the_future_does_not_come_back(tmp_path: Path) -> None:
    journal(tmp_path, corrected("4").replace("2026-11-20T", "2026-11-23T"))
    assert len(table(freeze(tmp_path, DAYS[0]), "quarantine")) == 1
    assert unlearnt(freeze(tmp_path, DAYS[4])) == {}


def test_a_promotion_has_not_learnt_what_an_earlier_night_took_after_it(tmp_path: Path) -> None:
    """A night that broke off before its freeze, and was gone on with when the next one was promoted already."""
    journal(tmp_path, corrected("4"))
    freeze(tmp_path, DAYS[1], champion="first")
    decided(tmp_path, DAYS[1], "first", "winner")
    journal(tmp_path, corrected("late"))
    assert unlearnt(freeze(tmp_path, DAYS[0], champion="winner")) == {"late": DAYS[0]}
    decided(tmp_path, DAYS[0], "winner", "loser")
    night = freeze(tmp_path, DAYS[2], champion="winner")
    assert unlearnt(night) == {"late": DAYS[0]}
    decided(tmp_path, DAYS[2], "winner", "another")
    assert unlearnt(freeze(tmp_path, DAYS[3], champion="another")) == {}


def test_a_line_that_was_made_blank_is_not_learnt_again_and_the_others_are(tmp_path: Path) -> None:
    """What docs/journal.md says to do with one that should go."""
    file = journal(tmp_path, corrected("1"), corrected("a secret 🌙"))
    freeze(tmp_path, DAYS[0])
    journal(tmp_path, corrected("2"))
    freeze(tmp_path, DAYS[1])
    one, secret, *others = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([one, b" " * len(secret), *others]))
    journal(tmp_path, corrected("5"))
    assert unlearnt(freeze(tmp_path, DAYS[2])) == {"1": DAYS[0], "2": DAYS[1], "5": DAYS[2]}


def test_what_a_promoted_night_held_out_is_still_to_be_taught(tmp_path: Path) -> None:
    """An owner who does without a reward model from then on has it learnt."""
    for number in range(40):
        asked = [{"role": "user", "content": f"{number} + 2?"}]
        journal(tmp_path, line("correction", messages=asked, response="?", correction=str(number)))
        journal(tmp_path, line("feedback", messages=asked, response=f"about {number}", value=1))
    unseen = {str(number) for number in range(40) if is_held_out([{"role": "user", "content": f"{number} + 2?"}], 0.25)}
    assert 5 < len(unseen) < 15
    freeze(tmp_path, DAYS[0], champion="first")
    decided(tmp_path, DAYS[0], "first", "winner", "", "reward_model.held_out_share=0.25")
    second = freeze(tmp_path, DAYS[1], champion="winner")
    assert {*unlearnt(second)} == unseen
    assert {response.removeprefix("about ") for response in table(second, "feedback").response} == unseen
    decided(tmp_path, DAYS[1], "winner", "direct", "", "preference_learning=direct")
    third = freeze(tmp_path, DAYS[2], champion="direct")
    assert unlearnt(third) == {}
    assert table(third, "feedback").empty


def test_a_worked_solution_that_a_promoted_night_had_no_room_for_comes_again(tmp_path: Path) -> None:
    solved = (line("trace", messages=ASKED, response=f"#### {answer}", teacher="me") for answer in (4, 5, 6))
    journal(tmp_path, *solved)
    freeze(tmp_path, DAYS[0], champion="first")
    later = {
        path: [solution_of(ASKED, f"#### {answer}") for answer in waiting]
        for path, waiting in {"distill": [4, 5], "distill-2": [5, 6]}.items()
    }
    order = "stages=[distill, {grpo: 1}, distill]"
    decided(tmp_path, DAYS[0], "first", "winner", "", order, done=("distill", "distill-2"), later=later)
    second = freeze(tmp_path, DAYS[1], champion="winner")
    assert table(second, "traces").source.tolist() == ["2026-11-20.jsonl:2"]  # the others were in one of its lessons
    decided(tmp_path, DAYS[1], "winner", "another", done=("distill",))
    assert table(freeze(tmp_path, DAYS[2], champion="another"), "traces").empty
