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
