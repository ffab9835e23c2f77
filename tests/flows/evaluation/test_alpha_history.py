"""How many nights have tested a candidate on the same problems."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import Home
from flows.evaluation.alpha_history import count_earlier_exams, earlier_exams
from tasks.stage import commit

OTHER = ("exam.target.levels=['3']", "exam.guards=[]")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    decided(home, "2026-11-18")
    decided(home, "2026-11-19", "exam.guards=[]", "exam.target.margin=0.1", "grpo.rounds=3")  # the same target problems
    decided(home, "2026-11-20")
    return home


def decided(home: Home, date: str, *settings: str, champion: str = "c0ffee", candidate: str = "cafe42") -> None:
    config, folder = load_night(STARTER, settings), home.night(date)
    (folder / "decide").mkdir(parents=True)
    (folder / "config.yaml").write_text(frozen_yaml(config))
    part = {config.exam.target.name: {"before_digest": champion, "after_digest": candidate}}
    found = {"target": config.exam.target.name, "comparisons": {"candidate": part, "distilled": part}}
    (folder / "decide" / "decision.json").write_text(json.dumps(found))
    commit(folder / "decide", "decide", {}, 1.0)


def test_a_night_that_goes_on_decides_by_the_count_that_it_began_with(home: Home) -> None:
    """Its owner may have finished the night before meanwhile."""
    config = load_night(STARTER)
    home.night("2026-11-22").mkdir()
    assert earlier_exams(home, "2026-11-22", config) == 3
    decided(home, "2026-11-21")
    assert (earlier_exams(home, "2026-11-22", config), count_earlier_exams(home, "2026-11-22", config)) == (3, 4)


def test_earlier_nights_of_the_same_problems_count(home: Home) -> None:
    config = load_night(STARTER)
    assert [count_earlier_exams(home, f"2026-11-{day}", config) for day in (18, 19, 20, 21)] == [0, 1, 2, 3]


def test_what_is_another_exam_another_student_or_no_test_does_not(home: Home) -> None:
    decided(home, "2026-11-21", *OTHER)
    decided(home, "2026-11-22", "name=another")
    decided(home, "2026-11-23", candidate="c0ffee")  # nothing was learnt
    decided(home, "2026-11-24")
    (home.night("2026-11-24") / "decide" / "manifest.json").unlink()  # killed before it was committed
    assert count_earlier_exams(home, "2026-11-25", load_night(STARTER)) == 3
    assert count_earlier_exams(home, "2026-11-25", load_night(STARTER, OTHER)) == 1


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        (["exam.target.samples=4", "exam.target.temperature=0.7"], 3),  # they decide nothing
        (["exam.target.problems=300"], 3),
        (["exam.target.after=399"], 3),  # one problem in common
        (["exam.target.after=400"], 0),
        (["exam.further_targets=[{benchmark: arithmetic, levels: ['3']}]", "exam.guards=[]"], 3),
    ],
)
def test_one_problem_in_common_is_a_look_at_the_same_exam(home: Home, settings: list[str], count: int) -> None:
    assert count_earlier_exams(home, "2026-11-25", load_night(STARTER, settings)) == count


def part(**settings: Any) -> str:
    return f"exam.target={json.dumps(settings)}"


@pytest.mark.parametrize(
    ("before", "tonight", "count"),
    [
        # docs/tutorial.md's third night, after the starter's
        (
            {"benchmark": "arithmetic", "levels": ["1", "2"], "problems": 400},
            {"benchmark": "arithmetic", "levels": ["1", "2", "3"], "problems": 500},
            1,
        ),
        ({"benchmark": "arithmetic", "levels": ["5"]}, {"benchmark": "arithmetic"}, 1),
        ({"benchmark": "arithmetic", "levels": ["1", "5"]}, {"benchmark": "arithmetic", "levels": ["2", "4"]}, 0),
        ({"benchmark": "math"}, {"benchmark": "math", "subset": "500"}, 1),
        ({"benchmark": "gsm8k"}, {"benchmark": "gsm8k", "lenient": True}, 1),
        ({"benchmark": "gsm8k"}, {"benchmark": "gsm8k", "source": "here"}, 1),
        ({"benchmark": "gsm8k", "source": "here"}, {"benchmark": "gsm8k", "source": "here", "after": 400}, 0),
        ({"benchmark": "mbpp"}, {"benchmark": "humaneval"}, 0),
    ],
)
def test_parts_that_may_share_problems_count_whatever_else_differs(
    tmp_path: Path, before: dict[str, Any], tonight: dict[str, Any], count: int
) -> None:
    decided(Home(tmp_path), "2026-11-18", part(**before), "exam.guards=[]")
    config = load_night(STARTER, [part(**tonight), "exam.guards=[]"])
    assert count_earlier_exams(Home(tmp_path), "2026-11-19", config) == count
