"""The stage that decides: by the exam, unless a severe alarm forbids a promotion."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.schema import ExamConfig, ExamPart
from tasks.decide import decide
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
