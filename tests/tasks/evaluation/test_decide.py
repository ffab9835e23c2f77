"""The stage that decides: by the exam, unless a severe alarm forbids a promotion."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from conf.sections.benchmark import ExamPart
from conf.sections.exam import ExamConfig
from tasks.evaluation.decide import decide
from tasks.stage import Artifact
from tests.tasks.doubles.night import DIGESTS, write_exam
from tests.tasks.doubles.picks import ranking

EXAM = ExamConfig(
    target=ExamPart(benchmark="arithmetic", levels=("1", "2")),
    guards=tuple(ExamPart(benchmark="arithmetic", levels=(level,), margin=0.06) for level in ("3", "4")),
    bootstrap_samples=2000,
)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights") / "2026-11-20"
    write_exam(folder)
    return folder


def decided(night: Path, folder: Path, exam: ExamConfig = EXAM, **options: Any) -> dict[str, Any]:
    exams = {role: Artifact(folder=night / "evaluate" / role, digest=role) for role in DIGESTS}
    decide.write(folder, **exams, exam=exam, seed=1, **options)
    return json.loads((folder / "decision.json").read_text())


def test_after_a_severe_alarm_the_champion_stays_and_the_reason_says_so(night: Path, tmp_path: Path) -> None:
    calm = decided(night, tmp_path)
    assert calm["promote"] is True
    alarmed = decided(night, tmp_path, severe=("The disk runs short.", "The quiz fell."))
    assert alarmed["promote"] is False
    assert alarmed["reasons"] == [
        "Nothing is promoted after a severe alarm. The disk runs short.",
        "Nothing is promoted after a severe alarm. The quiz fell.",
        *calm["reasons"],
    ]
    assert alarmed["comparisons"] == calm["comparisons"]


def test_the_target_is_tested_at_the_spent_alpha(night: Path, tmp_path: Path) -> None:
    """The thousandth exam: α = 0.025 · 6 / (1000 π)² = 1.5e-8; the candidate's p-value is far below even that."""
    spending = EXAM.model_copy(update={"alpha_spending": "quadratic"})
    spent = decided(night, tmp_path, spending, earlier_exams=999)
    assert spent["alpha"] == pytest.approx(0.025 * 6 / (1000 * math.pi) ** 2)
    assert spent["exams_sat"] == 1000
    assert "at α = 1.52e-08." in spent["reasons"][0]
    detectable = [
        decision["comparisons"]["candidate"]["arithmetic-1-2"]["detectable"]
        for decision in (spent, decided(night, tmp_path))
    ]
    assert detectable[0] > detectable[1]


def test_of_two_targets_one_is_enough(night: Path, tmp_path: Path) -> None:
    exam = ExamConfig(target=EXAM.guards[0], further_targets=(EXAM.target,), guards=EXAM.guards[1:])
    decision = decided(night, tmp_path, exam)
    assert (decision["promote"], decision["targets"]) == (True, ["arithmetic-3", "arithmetic-1-2"])
    assert list(decision["comparisons"]["candidate"]) == ["arithmetic-3", "arithmetic-1-2", "arithmetic-4"]


@pytest.mark.parametrize(
    ("gained", "margin", "promote", "decides"),
    [
        (10, 0.2, True, True),
        (3, 0.2, False, False),  # not significant
        (10, 0.0001, False, False),  # the target may not get worse, and here that is not shown
        (None, 0.2, False, False),  # too few picks to show anything
    ],
)
def test_taste_decides_too(tmp_path: Path, gained: int | None, margin: float, promote: bool, decides: bool) -> None:
    """Where the target shows no gain, the owner's held-out picks promote, if nothing gets worse."""
    night = tmp_path / "2026-11-20"
    write_exam(night, skill=dict.fromkeys(DIGESTS, 0.4))
    unchanged = EXAM.target.model_copy(update={"margin": margin})
    exam = ExamConfig(target=unchanged, bootstrap_samples=2000)
    alone = decided(night, tmp_path, exam)
    assert alone["promote"] is False
    count = 3 if gained is None else 12
    after = [number < (count if gained is None else gained) for number in range(count)]
    rankings = {
        "champion_picks": ranking(tmp_path / "champion", [False] * count, generated=9),
        "candidate_picks": ranking(tmp_path / "candidate", after, generated=9),
    }
    found = decided(night, tmp_path, exam, **rankings)
    assert found["promote"] is promote
    if gained is None:
        assert found == alone
        return
    assert (found["taste"]["n"], found["taste"]["before"], found["taste"]["after"]) == (12, 0, gained)
    assert found["reasons"][-1].startswith("Your held-out picks: the candidate favours your choice more")
    assert f"does in {gained} of {gained} conversations" in found["reasons"][-1]
    assert found["reasons"][-1].endswith(": your picks decide.") is decides


def test_where_the_target_decides_the_picks_do_not_claim_it(night: Path, tmp_path: Path) -> None:
    rankings = {
        "champion_picks": ranking(tmp_path / "champion", [False] * 12),
        "candidate_picks": ranking(tmp_path / "candidate", [True] * 12),
    }
    found = decided(night, tmp_path, **rankings)
    assert (found["promote"], "decide" in found["reasons"][-1]) == (True, False)


def test_picks_of_one_conversation_are_one_vote(night: Path, tmp_path: Path) -> None:
    rankings = {
        "champion_picks": ranking(tmp_path / "champion", [False] * 40, together=4),
        "candidate_picks": ranking(tmp_path / "candidate", [True] * 40, together=4),
    }
    taste = decided(night, tmp_path, **rankings)["taste"]
    assert (taste["n"], taste["after"], taste["gained"], taste["p_value"]) == (40, 40, 10, 2**-10)
