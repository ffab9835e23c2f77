"""A programming problem's truth, and many programs through one sandbox."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewards.programs.unit_tests import ProgramTests, failing_references, judged
from rewards.sandbox import Program
from rewards.verifier import Attempt, Problem, Score

ONE = ProgramTests("", ("assert f(1) == 2", "assert f(2) == 3"), "f")
RIGHT = ONE.program("def f(x):\n    return x + 1", 2.0, 256)
WRONG = ONE.program("def f(x):\n    return 2", 2.0, 256)


def test_a_truth_is_read_as_it_was_written() -> None:
    tests = ProgramTests("import math\n", ("assert f('é') == '\\n'", "assert f(1)"), "f")
    assert ProgramTests.read(tests.truth()) == tests
    assert json.loads(tests.truth()).keys() == {"setup", "tests", "entry_point"}


@pytest.mark.parametrize(
    "truth",
    [
        "",
        "42",
        "[]",
        "{",
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
    ready = Score(0.0, "no_answer")
    scores = judged([RIGHT, ready, WRONG, RIGHT, ready])
    assert [score.verdict for score in scores] == ["correct", "no_answer", "wrong", "correct", "no_answer"]
    assert scores[0] is scores[3]
    assert scores[1] is ready


def test_where_no_program_is_to_run_no_sandbox_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert judged([]) == []
    assert judged([Score(0.0, "no_answer")]) == [Score(0.0, "no_answer")]


def test_without_a_sandbox_nothing_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bubblewrap out of reach: no reward, in particular no zero, and the reason; other scores stay."""
    monkeypatch.setenv("PATH", str(tmp_path))
    scores = judged([RIGHT, Score(0.0, "no_answer"), WRONG])
    assert [(score.reward, score.verdict) for score in scores] == [
        (None, "grader_failed"),
        (0.0, "no_answer"),
        (None, "grader_failed"),
    ]
    assert "bubblewrap" in scores[0].detail
    assert "\n" not in scores[0].detail


def score(attempts: Sequence[Attempt]) -> list[Score]:
    return judged([ONE.program(attempt.completion, 2.0, 256) for attempt in attempts])


def test_references_that_fail_their_own_tests_are_named(caplog: pytest.LogCaptureFixture) -> None:
    problems = [Problem(f"counting/{index}", "counting", "", "") for index in range(2)]
    with caplog.at_level(logging.WARNING):
        failing = failing_references(score, zip(problems, [RIGHT.source, WRONG.source], strict=True))
    assert {problem_id: result.verdict for problem_id, result in failing.items()} == {"counting/1": "wrong"}
    assert "counting/1 is excluded: its own reference is wrong" in caplog.text


def test_a_sandbox_that_fails_excludes_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert failing_references(score, [(Problem("counting/0", "counting", "", ""), WRONG.source)]) == {}


def test_the_sandbox_may_have_one_worker_and_fewer_layers() -> None:
    scores = judged([RIGHT, WRONG], workers=1, without=("landlock",))
    assert [score.verdict for score in scores] == ["correct", "wrong"]
    with pytest.raises(ValueError, match="no layer is called magic"):
        judged([RIGHT], without=("magic",))  # pyright: ignore[reportArgumentType]


def test_programs_are_told_apart_by_all_that_matters() -> None:
    assert Program(RIGHT.source, ONE.tests, "", "f", 2.0, 256) == RIGHT
    assert len({RIGHT, ONE.program(RIGHT.source, 3.0, 256), ONE.program(RIGHT.source, 2.0, 128), WRONG}) == 4
