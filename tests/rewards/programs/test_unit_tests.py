"""A programming problem's truth, and how many programs go through one sandbox."""

import json
from pathlib import Path

import pytest

from conf.schema import SandboxConfig
from rewards.programs.unit_tests import ProgramTests, judged
from rewards.sandbox import Program
from rewards.verifier import Score

LIMITS = SandboxConfig(seconds=2.0, memory_mb=256)
TESTS = ProgramTests("", ("assert f(1) == 2", "assert f(2) == 3"), "f")
RIGHT = TESTS.program("def f(x):\n    return x + 1", LIMITS)
WRONG = TESTS.program("def f(x):\n    return 2", LIMITS)
READY = Score(0.0, "no_answer")


def test_a_truth_is_read_as_it_was_written() -> None:
    tests = ProgramTests("import math\n", ("assert f('é') == '\\n'", "assert f(1)"), "f")
    assert ProgramTests.read(tests.truth()) == tests
    assert json.loads(tests.truth()).keys() == {"setup", "tests", "entry_point"}
    assert Program(RIGHT.source, TESTS.tests, "", "f", 2.0, 256) == RIGHT


@pytest.mark.parametrize(
    "truth",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"setup": "", "tests": [], "entry_point": "f"}',
        '{"setup": "", "tests": "assert f(1)", "entry_point": "f"}',
        '{"setup": "", "tests": ["assert f(1)", 2], "entry_point": "f"}',
        '{"setup": null, "tests": ["assert f(1)"], "entry_point": "f"}',
        '{"setup": "", "tests": ["assert f(1)"], "entry_point": null}',
        '{"setup": "", "tests": ["assert f(1)"]}',
    ],
)
def test_an_unreadable_truth_is_none(truth: str) -> None:
    assert ProgramTests.read(truth) is None


def test_scores_come_in_order_and_identical_programs_run_once() -> None:
    scores = judged([RIGHT, READY, WRONG, RIGHT, READY], LIMITS)
    assert [score.verdict for score in scores] == ["correct", "no_answer", "wrong", "correct", "no_answer"]
    assert scores[0] is scores[3]
    assert scores[1] is READY


def test_without_a_sandbox_no_program_has_a_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a zero for want of bubblewrap; other scores stay, and where nothing is to run no sandbox is needed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    scores = judged([RIGHT, READY, WRONG])
    assert [score.reward for score in scores] == [None, 0.0, None]
    assert {scores[0].verdict, scores[2].verdict} == {"grader_failed"}
    assert "apt install bubblewrap" in scores[0].detail
    assert "\n" not in scores[0].detail
    assert judged([READY]) == [READY]
    assert judged([]) == []
