"""What goes from one night's rounds to the next night's."""

import shutil
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from flows.training.rollouts import GroupSampler
from tasks.tables import SOLVE_RATES, read_table
from tests.flows.nights import finished_night
from tests.tasks.doubles.tables import solve_rate, write_stage


def practised(home: Home, date: str, solved: float, name: str = "starter") -> None:
    """A night of two rounds; the second one had a refill."""
    folder = finished_night(home, date, load_night(STARTER, [f"name={name}"]))
    for number, path in enumerate(("round-01", "round-02", "round-02/refill-1")):
        rates = [solve_rate("arithmetic/1/plus", 8, solved + number)]
        write_stage(folder / path / "score", {"solve_rates": (SOLVE_RATES, rates)})
        write_stage(folder / path / "checkpoint", {})
        (folder / path / "checkpoint" / "metrics.json").write_text("{}")


@pytest.mark.parametrize(("day", "solved"), [(24, 4.0), (22, 4.0), (21, 3.0), (20, None)])
def test_solve_rates_live_on_over_nights(tmp_path: Path, day: int, solved: float | None) -> None:
    home = Home(tmp_path)
    practised(home, "2026-11-20", 1.0)
    practised(home, "2026-11-21", 2.0)
    practised(home, "2026-11-22", 7.0, name="another")
    practised(home, "2026-11-23", 9.0)
    for round_ in home.night("2026-11-23").glob("round-*"):  # it came to no round
        shutil.rmtree(round_)
    known = GroupSampler(Night(home, f"2026-11-{day}", load_night(STARTER)), None).solve_rates
    if solved is None:
        assert known is None
    else:
        assert read_table(known.folder / "solve_rates.parquet", SOLVE_RATES).solved.tolist() == [solved]
