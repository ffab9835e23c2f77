"""An environment as a benchmark: graded by playing again, and one line of error for one that is broken."""

import json
from typing import Any

import pytest

from conf.schema import BenchmarkConfig
from conf.storage.home import InputError
from rewards.data.benchmarks import configured
from rewards.environments.episodes import Episodes, replay, texts_of
from rewards.verifier import Attempt, Problem, Split
from tests.rewards.countdown import Countdown

START = Problem("countdown/3", "countdown", "Count down from 3.", "", "3")


def score(*texts: str) -> Any:
    (found,) = Episodes(Countdown()).score([Attempt(START, json.dumps(texts))])
    return found


def test_an_episode_is_graded_by_playing_it_again() -> None:
    found = score("3", "nonsense", "2", "1")
    assert (found.verdict, found.reward) == ("correct", pytest.approx(2.5))
    assert found.parts == {"value": 1.0, "turns": 4.0, "valid": 0.75, "mistake": -0.5, "step": 3.0}
    assert [turn.observation for turn in found.turns] == ["Count down. Next: 3", "Next: 2", "Next: 2", "Next: 1"]
    assert [turn.valid for turn in found.turns] == [True, False, True, True]
    assert [turn.state["next"] for turn in found.turns] == [3, 2, 2, 1]


def test_what_comes_after_the_end_does_not_count() -> None:
    assert score("3", "2", "1", "0", "nonsense").parts == score("3", "2", "1").parts


@pytest.mark.parametrize(
    ("texts", "verdict", "value"),
    [
        (["x", "y"], "no_answer", 0.0),
        (["3"], "wrong", 1 / 3),
        ([], "no_answer", 0.0),
        (["3", "2", "1"], "correct", 1.0),
    ],
)
def test_verdicts(texts: list[str], verdict: str, value: float) -> None:
    found = score(*texts)
    assert (found.verdict, found.parts["value"]) == (verdict, pytest.approx(value))


@pytest.mark.parametrize("completion", ["", "3", "[1, 2]", '{"a": 1}', "[", '"3"'])
def test_what_is_no_episode_is_one_turn(completion: str) -> None:
    assert texts_of(completion) == [completion]


def raises(*_: Any) -> Any:
    raise ZeroDivisionError("there is\nno ant")


@pytest.mark.parametrize(
    ("method", "broken", "reason"),
    [
        ("reset", raises, "ZeroDivisionError: there is no ant"),
        ("step", raises, "ZeroDivisionError: there is no ant"),
        ("step", lambda *_: ({0: {1}}, "", 0, 0, 0, {}), "TypeError: Object of type set is not JSON serializable"),
        ("step", lambda *_: ({}, "", 0, 0, 0, {"value": "x"}), "ValueError: could not convert string to float: 'x'"),
        ("step", lambda *_: ({}, "", 0, 0), "ValueError: not enough values to unpack (expected 6, got 4)"),  # older Gym
    ],
)
def test_a_broken_environment_is_one_line(method: str, broken: Any, reason: str) -> None:
    environment = Countdown()
    setattr(environment, method, broken)
    with pytest.raises(InputError, match="mend it") as raised:
        replay(environment, START, ["3"])
    assert f"failed in {method} of countdown/3 ({reason})" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_class_with_step_is_an_environment(split: Split) -> None:
    own = configured(BenchmarkConfig(name="tests.rewards.countdown:Countdown"))
    assert own.environment is not None
    assert not own.bounded
    problem = own.problems(split)[0]
    assert own.prompt(problem).startswith("Count down. Next: ")
    assert own.kind(problem) == f"from {problem.level}"
    assert {score.verdict for score in own.score([Attempt(*taught) for taught in own.solutions()])} == {"correct"}
