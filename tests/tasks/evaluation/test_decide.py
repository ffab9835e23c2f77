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
from tests.tasks.night_folder import DIGESTS, write_exam

EXAM = ExamConfig(
    target=ExamPart(benchmark="arithmetic", levels=("1", "2")),
    guards=tuple(ExamPart(benchmark="arithmetic", levels=(level,), margin=0.06) for level in ("3", "4")),
    bootstrap_samples=2000,
)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("nights") / "2026-11-20"
    return folder, write_exam(folder)


def decided(night: Path, place: Path, *severe: str) -> dict[str, Any]:
    sat = {who: Artifact(folder=night / "evaluate" / who, digest=who) for who in DIGESTS}
    decide.write(place, **sat, exam=EXAM, seed=1, severe=severe)
    return json.loads((place / "decision.json").read_text())


def test_after_a_severe_alarm_the_champion_stays_and_the_reason_says_so(
    night: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, by_hand = night
    calm = decided(folder, tmp_path)
    assert calm["promote"] is by_hand["promote"] is True
    assert calm["reasons"] == by_hand["reasons"]
    alarmed = decided(folder, tmp_path, "The disk runs short.", "The quiz fell.")
    assert alarmed["promote"] is False
    assert alarmed["reasons"] == [
        "Nothing is promoted after a severe alarm. The disk runs short.",
        "Nothing is promoted after a severe alarm. The quiz fell.",
        *calm["reasons"],
    ]
    assert alarmed["comparisons"] == calm["comparisons"]


def test_the_decision_states_its_alpha_and_what_it_lets_expect(
    night: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    found = decided(night[0], tmp_path)
    assert (found["target"], found["targets"]) == ("arithmetic-1-2", ["arithmetic-1-2"])
    assert (found["alpha"], found["alpha_spending"], found["exams_sat"]) == (0.025, "fixed", 1)
    assert found["false_promotions_a_year"] == pytest.approx(365 * 0.025)


def test_a_spent_alpha_is_what_the_target_is_tested_at(night: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """The thousandth exam: α = 0.025 · 6 / (1000 π)² = 1.5e-8; the candidate's p-value is far below even that."""
    sat = {who: Artifact(folder=night[0] / "evaluate" / who, digest=who) for who in DIGESTS}
    spent = EXAM.model_copy(update={"alpha_spending": "quadratic"})
    decide.write(tmp_path, **sat, exam=spent, seed=1, earlier_exams=999)
    found = json.loads((tmp_path / "decision.json").read_text())
    assert found["alpha"] == pytest.approx(0.025 * 6 / (1000 * math.pi) ** 2)
    assert found["exams_sat"] == 1000
    assert "at α = 1.52e-08." in found["reasons"][0]
    ordinary, spare = decided(night[0], tmp_path)["comparisons"]["candidate"], found["comparisons"]["candidate"]
    assert spare["arithmetic-1-2"]["detectable"] > ordinary["arithmetic-1-2"]["detectable"]


def test_of_two_targets_one_is_enough(night: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    sat = {who: Artifact(folder=night[0] / "evaluate" / who, digest=who) for who in DIGESTS}
    exam = ExamConfig(target=EXAM.guards[0], further_targets=(EXAM.target,), guards=EXAM.guards[1:])
    decide.write(tmp_path, **sat, exam=exam, seed=1)
    found = json.loads((tmp_path / "decision.json").read_text())
    assert (found["promote"], found["targets"]) == (True, ["arithmetic-3", "arithmetic-1-2"])
    assert list(found["comparisons"]["candidate"]) == ["arithmetic-3", "arithmetic-1-2", "arithmetic-4"]
