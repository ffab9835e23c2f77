"""A benchmark of the user's own that hangs or dies gives nulls; the program's own ones are asked as they are."""

import os
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig
from rewards.arithmetic import Arithmetic
from rewards.benchmarks import configured
from rewards.verifier import Attempt, Problem
from tasks.rollouts import score as own_graders
from tasks.rollouts.score import scores_of

OWN = """
import os, time
from rewards.verifier import Score

class Own:
    name = "own"

    def __init__(self, source):
        pass

    def score(self, attempts):
        if attempts[0].completion == "hang":
            while True:
                pass
        if attempts[0].completion == "die":
            os._exit(1)
        if attempts[0].completion == "raise":
            raise LookupError("mine")
        return [Score(1.0, "correct", str(os.getpid())) for _ in attempts]
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_users_own.py").write_text(OWN)
    return "a_users_own:Own"


def attempts(*completions: str) -> list[Attempt]:
    return [Attempt(Problem("p", "own", "?", ""), completion) for completion in completions]


def test_a_grader_of_ones_own_judges_in_a_child_that_may_hang_or_die(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = configured(BenchmarkConfig(name=module))
    one, two = scores_of(own, attempts("a", "b"))
    assert (one.verdict, one.detail) == ("correct", two.detail)
    assert one.detail != str(os.getpid())
    with pytest.raises(LookupError, match="mine"):
        scores_of(own, attempts("raise"))
    died = scores_of(own, attempts("die", "a"))
    assert [(score.reward, score.verdict) for score in died] == [(None, "grader_failed")] * 2
    assert died[0].detail.startswith("the grader process died")
    monkeypatch.setattr(own_graders, "LIMIT", 5.0)
    (hung,) = scores_of(own, attempts("hang"))
    assert (hung.reward, hung.verdict) == (None, "grader_failed")
    assert hung.detail == "the grader process had not finished after 5 s and was ended"


def test_the_programs_own_graders_judge_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr(own_graders, "call_once", never)
    (problem, *_) = Arithmetic().problems("test")
    assert scores_of(Arithmetic(), [Attempt(problem, problem.truth)])[0].verdict in ("correct", "no_answer")
