"""Which nights made the champion, each from the champion before."""

import json
from pathlib import Path

import pytest

from conf.storage.home import InputError
from tasks.journal.lineage import line_of, nights_with_smaller_holdout, taught_by
from tasks.stage import MANIFEST, commit
from tests.tasks.doubles.journals import DAYS, decided


def test_the_line_of_a_checkpoint(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    assert list(line_of("first", nights)) == []
    decided(tmp_path, DAYS[0], "first", "second", "lessons alone")
    decided(tmp_path, DAYS[1], "second", "second", "second")  # nothing was learnt
    decided(tmp_path, DAYS[2], "second", "third")
    decided(tmp_path, DAYS[3], "second", "damaged")
    (nights / DAYS[3] / "decide" / "decision.json").write_text("{")
    first, third = nights / DAYS[0], nights / DAYS[2]
    expected = {
        "first": [],
        "second": [(first, True)],
        "lessons alone": [(first, False)],
        "third": [(third, True), (first, True)],
        "damaged": [],
    }
    assert {digest: list(line_of(digest, nights)) for digest in expected} == expected


def test_a_night_of_an_earlier_date_may_have_been_the_later_one(tmp_path: Path) -> None:
    """One that was interrupted before it had a champion, and was gone on with after the next one's promotion."""
    nights = tmp_path / "nights"
    decided(tmp_path, DAYS[1], "first", "second")
    decided(tmp_path, DAYS[0], "second", "third")
    assert list(line_of("third", nights)) == [(nights / DAYS[0], True), (nights / DAYS[1], True)]


def test_a_night_that_went_on_from_an_unproven_candidate_is_made_by_both(tmp_path: Path) -> None:
    """What the unproven night taught counts as learned for the candidate that goes on, and not for the champion."""
    nights = tmp_path / "nights"
    decided(tmp_path, DAYS[0], "first", "ahead", done=("lessons/words",))
    decided(tmp_path, DAYS[1], "first", "further", "lessons", start="ahead", done=("lessons/corrections",))
    decided(tmp_path, DAYS[2], "first", "further", start="further")  # which taught nothing
    assert list(line_of("further", nights)) == [(nights / DAYS[1], True), (nights / DAYS[0], True)]
    assert list(line_of("lessons", nights)) == [(nights / DAYS[1], False), (nights / DAYS[0], True)]
    assert [set(night.kinds) for night in taught_by("further", nights)] == [{"correction"}, {"words"}]
    assert taught_by("first", nights) == []


def test_the_decisions_of_version_0_1_are_read(tmp_path: Path) -> None:
    decided(tmp_path, DAYS[0], "", "")
    folder = tmp_path / "nights" / DAYS[0] / "decide"
    compared = {
        model: {"target": {"before_digest": "first", "after_digest": made}}
        for model, made in {"candidate": "second", "distilled": "lessons alone"}.items()
    }
    (folder / MANIFEST).unlink()
    (folder / "decision.json").write_text(json.dumps({"target": "target", "comparisons": compared}))
    commit(folder, "decide", {}, 0.0)
    for digest, is_candidate in {"second": True, "lessons alone": False}.items():
        assert list(line_of(digest, tmp_path / "nights")) == [(folder.parent, is_candidate)]


def test_checkpoints_that_were_made_from_each_other_end_the_line(tmp_path: Path) -> None:
    decided(tmp_path, DAYS[0], "first", "second")
    decided(tmp_path, DAYS[1], "second", "first")
    assert [night.name for night, _ in line_of("first", tmp_path / "nights")] == [DAYS[1], DAYS[0]]


def test_the_nights_of_the_lineage_that_held_out_less(tmp_path: Path) -> None:
    nights, share = tmp_path / "nights", "reward_model.held_out_share={}".format
    decided(tmp_path, DAYS[0], "first", "second", "", "preference_learning=direct")
    decided(tmp_path, DAYS[1], "second", "loser", "", "preference_learning=direct")
    decided(tmp_path, DAYS[2], "second", "third", "", share(0.25))
    decided(tmp_path, DAYS[3], "third", "fourth", "", share(0.5))
    assert nights_with_smaller_holdout("fourth", nights, 0.5) == ((DAYS[2], 0.25), (DAYS[0], 0.0))
    for champion in ("fourth", "second"):
        assert nights_with_smaller_holdout(champion, nights, 0.25) == ((DAYS[0], 0.0),)
    assert nights_with_smaller_holdout("fourth", nights, 0.0) == nights_with_smaller_holdout("first", nights, 0.5) == ()
    (nights / DAYS[2] / "config.yaml").write_text("seed: x")
    with pytest.raises(InputError, match=f"{DAYS[2]}/config.yaml: seed: "):
        nights_with_smaller_holdout("fourth", nights, 0.25)
