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


def test_earlier_nights_on_the_same_problems_count(home: Home) -> None:
    """A night keeps the count that it began with, though the night before may be finished meanwhile."""
    config = load_night(STARTER)
    assert [count_earlier_exams(home, f"2026-11-{day}", config) for day in (18, 19, 20, 21)] == [0, 1, 2, 3]
    home.night("2026-11-22").mkdir()
    assert earlier_exams(home, "2026-11-22", config) == 3
    decided(home, "2026-11-21")
    assert (earlier_exams(home, "2026-11-22", config), count_earlier_exams(home, "2026-11-22", config)) == (3, 4)


def test_another_exam_another_student_or_no_test_does_not_count(home: Home) -> None:
    decided(home, "2026-11-21", *OTHER)
    decided(home, "2026-11-22", "name=another")
    decided(home, "2026-11-23", candidate="c0ffee")  # nothing was learnt
    decided(home, "2026-11-24")
    (home.night("2026-11-24") / "decide" / "manifest.json").unlink()  # killed before it was committed
    assert count_earlier_exams(home, "2026-11-25", load_night(STARTER)) == 3
    assert count_earlier_exams(home, "2026-11-25", load_night(STARTER, OTHER)) == 1
    further = ["exam.further_targets=[{benchmark: arithmetic, levels: ['3']}]", "exam.guards=[]"]
    assert count_earlier_exams(home, "2026-11-25", load_night(STARTER, further)) == 4


SUMS = {"benchmark": "arithmetic", "levels": ["1", "2"], "problems": 400}


@pytest.mark.parametrize(
    ("before", "tonight", "count"),
    [
        (SUMS, SUMS | {"samples": 4, "temperature": 0.7}, 1),  # sampled answers decide nothing
        (SUMS, SUMS | {"problems": 300}, 1),
        (SUMS, SUMS | {"after": 399}, 1),  # one problem in common
        (SUMS, SUMS | {"after": 400}, 0),
        (SUMS, SUMS | {"levels": ["1", "2", "3"], "problems": 500}, 1),  # the third night of docs/tutorial.md
        (SUMS, {"benchmark": "arithmetic"}, 1),
        (SUMS, {"benchmark": "arithmetic", "levels": ["3", "4"]}, 0),
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
    decided(Home(tmp_path), "2026-11-18", f"exam.target={json.dumps(before)}", "exam.guards=[]")
    config = load_night(STARTER, [f"exam.target={json.dumps(tonight)}", "exam.guards=[]"])
    assert count_earlier_exams(Home(tmp_path), "2026-11-19", config) == count
