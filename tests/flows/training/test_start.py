"""What a night begins with: the last night's candidate, where it was ahead but unproven, or the champion."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import START, SUMMARY, Home
from flows.run.context import Night
from flows.training.inputs import start_of
from models.hf.checkpoint import DamagedCheckpointError
from tests.flows.nights import finished_night
from tests.tasks.doubles.registry import make_models

DATE, BEFORE = "2026-11-20", "2026-11-19"


class School:
    """A home with a champion and the candidate of the last night."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        models = make_models(self.home.checkpoints)
        self.champion, self.candidate = models["champion"], models["candidate"]

    def finish(self, unpromoted: int | None, name: str = "starter", champion: str = "", date: str = BEFORE) -> None:
        digests = {"champion": champion or self.champion.name, "candidate": self.candidate.name}
        proven = {} if unpromoted is None else {"unpromoted": unpromoted}
        finished_night(self.home, date, load_night(STARTER, [f"name={name}"]), digests=digests, **proven)

    def start(self, *settings: str) -> tuple[Path, int]:
        night = Night(self.home, DATE, load_night(STARTER, settings))
        night.folder.mkdir(parents=True, exist_ok=True)
        night.close()
        return start_of(night, self.champion)


@pytest.fixture
def school(tmp_path: Path) -> School:
    return School(tmp_path)


@pytest.mark.parametrize(
    ("last", "settings"),
    [
        ({"unpromoted": 0}, ()),
        ({"unpromoted": None}, ()),  # of version 0.1
        ({"unpromoted": 1}, ("start_from=champion",)),
        ({"unpromoted": 1, "champion": "another"}, ()),  # moved by hand since
        ({"unpromoted": 1, "name": "another"}, ()),
        ({"unpromoted": 1, "date": "2026-11-21"}, ()),  # later than tonight
        (None, ()),
    ],
)
def test_otherwise_it_is_the_champion(school: School, last: dict[str, Any] | None, settings: tuple[str, ...]) -> None:
    if last is not None:
        school.finish(**last)
    assert school.start(*settings) == (school.champion, 0)


def test_a_candidate_that_is_not_whole_is_left(school: School) -> None:
    school.finish(1)
    (school.candidate / "model.safetensors").write_text("torn")
    assert school.start() == (school.champion, 0)


def test_the_last_nights_candidate_is_chosen_once_and_holds_when_the_night_resumes(school: School) -> None:
    school.finish(2)
    assert school.start() == (school.candidate, 2)
    (school.home.night(BEFORE) / SUMMARY).unlink()
    assert school.start() == (school.candidate, 2)
    (school.candidate / "model.safetensors").write_text("torn")
    with pytest.raises(DamagedCheckpointError, match=school.candidate.name):
        school.start()
    start = json.loads((school.home.night(DATE) / START).read_text())
    assert start == {"digest": school.candidate.name, "unpromoted": 2}
