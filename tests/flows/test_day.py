"""What the fit of the reward model is told of the nights before."""

from pathlib import Path
from typing import Any

import pytest

from conf.home import Home
from conf.load import STARTER, load_night
from flows.day import reward_model_of
from flows.night import Night
from tasks.fit_reward_model import fit_reward_model
from tests.tasks.committed_tables import write_stage
from tests.tasks.test_replay import DAYS, decided


class ToldError(Exception):
    """Ends the stage before it begins, with what it was given."""


@pytest.mark.parametrize(("how", "looser"), [("both", ((DAYS[0], 0.0),)), ("direct", ())])
def test_what_a_direct_night_taught_the_champion_is_told_to_the_next_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, looser: Any
) -> None:
    home = Home(tmp_path)
    decided(home.root, DAYS[0], "first", "winner", "", "preference_learning=direct")

    def told(stage: Any, place: str, **arguments: Any) -> Any:
        assert stage is fit_reward_model
        stage._inputs(arguments)  # all of it has a digest
        raise ToldError(arguments["looser"])

    night = Night(home, DAYS[1], load_night(STARTER, [f"preference_learning={how}"]))
    monkeypatch.setattr(night, "run", told)
    day = write_stage(night.folder / "freeze_journal", {})
    with pytest.raises(ToldError) as found:
        reward_model_of(night, day, home.checkpoints / "winner", None, ())  # pyright: ignore[reportArgumentType]
    assert found.value.args == (looser,)
