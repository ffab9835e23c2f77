"""Where a night begins: with the day copy only if it favours held-out picks more and holds every guard's margin."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.sections.benchmark import ExamPart
from conf.sections.exam import ExamConfig
from tasks.evaluation.choose_start import choose_start
from tasks.stage import Artifact
from tests.tasks.doubles.night import DIGESTS, write_exam
from tests.tasks.doubles.picks import ranking

EXAM = ExamConfig(
    target=ExamPart(benchmark="arithmetic", levels=("1", "2")),
    guards=(ExamPart(benchmark="arithmetic", levels=("3",), margin=0.06),),
    bootstrap_samples=2000,
)
ENGLISH = EXAM.model_copy(update={"english_margin": 0.05})


@pytest.fixture(scope="module")
def exams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evaluations of a champion, of an equal model (distilled), and of one that forgot nearly all (candidate)."""
    folder = tmp_path_factory.mktemp("nights") / "2026-11-20"
    write_exam(folder, skill=dict(zip(DIGESTS, (0.9, 0.9, 0.01), strict=True)))
    for role, nats in zip(DIGESTS, (3.0, 3.2, 3.0), strict=True):
        passages = [nats + passage / 100 for passage in range(30)]
        (folder / "evaluate" / role / "english.json").write_text(json.dumps({"nats": passages}))
    return folder / "evaluate"


@pytest.mark.parametrize(
    ("day", "right", "exam", "begins", "reason"),
    [
        (
            "champion",
            10,
            EXAM,
            True,
            "in 10 of 10 conversations (p = 0.0010), and ranks it first in 10 of 12",
        ),
        ("champion", 3, EXAM, False, "not enough"),
        ("candidate", 10, EXAM, False, "Guard arithmetic-3"),
        ("distilled", 10, ENGLISH, False, "Guard English prose: 3.15 → 3.35"),
        ("champion", None, EXAM, False, "too few held-out picks"),
        (None, 10, EXAM, False, "It did not sit the exam."),
    ],
)
def test_it_must_be_earned(
    exams: Path, tmp_path: Path, day: str | None, right: int | None, exam: ExamConfig, begins: bool, reason: str
) -> None:
    count = 3 if right is None else 12
    sat = day and Artifact(folder=exams / day, digest=day)
    picks: dict[str, Any] = {
        "champion_picks": ranking(tmp_path / "champion", [False] * count),
        "day_picks": ranking(tmp_path / "day", [number < (right or 3) for number in range(count)]),
    }
    champion = Artifact(folder=exams / "champion", digest="champion")
    choose_start.write(tmp_path, champion=champion, day=sat or None, exam=exam, seed=1, **picks)
    found = json.loads((tmp_path / "start.json").read_text())
    assert found["day"] is begins
    assert reason in " ".join(found["reasons"])


def test_a_ranking_that_failed_is_not_called_too_few_picks(exams: Path, tmp_path: Path) -> None:
    champion, sat = (Artifact(folder=exams / "champion", digest=name) for name in ("champion", "day"))
    picks: dict[str, Any] = {"champion_picks": ranking(tmp_path / "champion", [False] * 12), "day_picks": None}
    choose_start.write(tmp_path, champion=champion, day=sat, exam=EXAM, seed=1, **picks)
    found = json.loads((tmp_path / "start.json").read_text())
    assert found == {"day": False, "reasons": ["The held-out picks were not ranked."]}


def test_it_says_why_there_is_no_day_copy(exams: Path, tmp_path: Path) -> None:
    champion = Artifact(folder=exams / "champion", digest="champion")
    nothing: dict[str, Any] = dict.fromkeys(("day", "champion_picks", "day_picks"))
    choose_start.write(tmp_path, champion=champion, exam=EXAM, seed=1, refused="The merge is wrong.", **nothing)
    assert json.loads((tmp_path / "start.json").read_text()) == {"day": False, "reasons": ["The merge is wrong."]}
