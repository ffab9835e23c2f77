"""Two nights of a student that stays its first weights and an adapter: nothing is ever merged."""

import json
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

from models.hf.checkpoint import base_of, is_adapter
from tests.chaos.school import DATE, open_school

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
KEPT = ("lora={rank: 4, alpha: 8, keep: true}", "exam.alpha=0.2")
NEXT = "2026-01-02"


@pytest.mark.usefixtures("prefect_server")
def test_the_second_night_goes_on_from_the_firsts_adapter(tmp_path: Path) -> None:
    school = open_school(tmp_path / "tiny", get_current_settings().api.url)
    home = school.home("home")
    said = school.watch(home) / "said.log"
    for date in (DATE, NEXT):
        assert school.start(home, date=date, settings=KEPT) == 0, said.read_text()[-3000:]
    first, second = (home.checkpoints / (home.night(date) / "champion.txt").read_text() for date in (DATE, NEXT))
    whole = [folder for folder in home.checkpoints.iterdir() if not is_adapter(folder)]
    assert whole == [first]  # the student as it was enrolled
    assert base_of(second) == first
    digests = json.loads((home.night(NEXT) / "summary.json").read_text())["digests"]
    assert base_of(home.checkpoints / digests["candidate"]) == first
