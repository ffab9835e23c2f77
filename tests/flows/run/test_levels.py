"""The target that moves on: which levels a night has, by the nights before it."""

from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from flows.run.levels import joined_levels, with_next_level
from tests.flows.nights import finished_night

CONFIG = load_night(STARTER, ["exam.next_level_at=0.8"])


def finish(home: Home, date: str, config: NightConfig, *, low: float, promoted: bool = True) -> None:
    """Leave a finished night after which a model with this lower bound serves."""
    serving, other = ("candidate", "champion") if promoted else ("champion", "candidate")
    accuracy = {serving: {"low": low}, other: {"low": 0.99 - low}}
    finished_night(home, date, config, decision="promoted" if promoted else "kept", accuracy=accuracy)


def levels(config: NightConfig) -> tuple[tuple[str, ...] | None, ...]:
    return config.exam.target.levels, *(entry.levels for entry in config.benchmarks)


@pytest.mark.parametrize("promoted", [True, False])
def test_a_level_joins_once_the_lower_bound_has_passed(tmp_path: Path, promoted: bool) -> None:
    home = Home(tmp_path)
    assert levels(with_next_level(CONFIG, home, "2026-11-18")) == (("1", "2"),) * 2
    finish(home, "2026-11-18", CONFIG, low=0.79, promoted=promoted)
    assert with_next_level(CONFIG, home, "2026-11-19") == CONFIG
    assert joined_levels(CONFIG, home, "2026-11-19") == ()
    finish(home, "2026-11-19", CONFIG, low=0.81, promoted=promoted)
    third = with_next_level(CONFIG, home, "2026-11-20")
    assert levels(third) == (("1", "2", "3"),) * 2
    assert joined_levels(third, home, "2026-11-20") == ("3", "4", "5")
    assert with_next_level(third, home, "2026-11-20") == third  # as resumed with its own configuration
    assert with_next_level(CONFIG, home, "2026-11-19") == CONFIG  # the nights after it do not count
    finish(home, "2026-11-20", third, low=0.6, promoted=promoted)
    fourth = with_next_level(CONFIG, home, "2026-11-21")
    assert fourth == third
    assert joined_levels(fourth, home, "2026-11-21") == ("3", "4", "5")
    finish(home, "2026-11-21", fourth, low=0.9, promoted=promoted)
    fifth = with_next_level(CONFIG, home, "2026-11-22")
    assert levels(fifth) == (("1", "2", "3", "4"),) * 2
    assert joined_levels(fifth, home, "2026-11-22") == ("3", "4", "5")


@pytest.mark.parametrize(
    ("tonight", "joined"),
    [
        ([], ("3", "4", "5")),
        (["exam.next_level_at=null"], ()),
        (["name=other"], ()),
        (['exam.target={benchmark: gsm8k, levels: ["1", "2", "3"]}'], ()),
    ],
)
def test_which_levels_have_joined(tmp_path: Path, tonight: list[str], joined: tuple[str, ...]) -> None:
    """Since the first night with this target: an earlier one with another does not count."""
    home, target = Home(tmp_path), 'exam.target={benchmark: arithmetic, levels: ["1", "2", "3"]}'
    finish(home, "2026-11-17", load_night(STARTER, ["exam.target={benchmark: gsm8k}"]), low=0.6)
    finish(home, "2026-11-18", CONFIG, low=0.6)
    assert joined_levels(load_night(STARTER, [target, *tonight]), home, "2026-11-19") == joined


def test_the_next_tier_of_ants(tmp_path: Path) -> None:
    """Practice, whose levels are others, stays as it was."""
    home = Home(tmp_path)
    ants = load_night(STARTER.with_name("ants.yaml"), ["exam.next_level_at=0.5"])
    finish(home, "2026-11-18", ants, low=0.6)
    moved = with_next_level(ants, home, "2026-11-19")
    assert moved.exam.target.levels == ("0", "1")
    assert moved.benchmarks == ants.benchmarks
    last = load_night(STARTER.with_name("ants.yaml"), ['exam.target.levels=["0", "1", "2"]', "exam.next_level_at=0.5"])
    finish(home, "2026-11-19", last, low=0.6)
    reached = with_next_level(ants, home, "2026-11-20").exam.target.levels
    assert reached == ("0", "1", "2")  # tier 3 is not practised


def test_a_guard_with_the_levels_that_the_target_reaches_is_refused(tmp_path: Path) -> None:
    home, guards = Home(tmp_path), 'exam.guards=[{benchmark: arithmetic, levels: ["1", "2", "3"], margin: 0.1}]'
    finish(home, "2026-11-18", config := load_night(STARTER, [guards, "exam.next_level_at=0.5"]), low=0.6)
    with pytest.raises(InputError, match="the target has reached the levels of arithmetic-1-2-3; remove that guard"):
        with_next_level(config, home, "2026-11-19")


def test_nothing_follows_the_last_level_and_another_target_does_not_count(tmp_path: Path) -> None:
    home = Home(tmp_path)
    every = with_next_level(load_night(STARTER, ['exam.target.levels=["1", "2", "3", "4", "5"]']), home, "2026-11-18")
    finish(home, "2026-11-18", every, low=0.9)
    assert with_next_level(CONFIG, home, "2026-11-19").exam.target.levels == ("1", "2", "3", "4", "5")
    assert with_next_level(CONFIG.model_copy(update={"name": "other"}), home, "2026-11-19").exam == CONFIG.exam
    gsm8k = load_night(STARTER, ['exam.target={benchmark: gsm8k, levels: ["1"]}', "exam.next_level_at=0.8"])
    assert with_next_level(gsm8k, home, "2026-11-19") == gsm8k
    fixed = load_night(STARTER, ["exam.next_level_at=null"])
    assert with_next_level(fixed, home, "2026-11-19") == fixed
    every_level = load_night(STARTER, ["exam.target.levels=null"])
    assert with_next_level(every_level, home, "2026-11-19") == every_level
