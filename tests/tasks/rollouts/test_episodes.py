"""A user's environment plays in a process of its own: one line where it dies, hangs or raises."""

import os
import time
from typing import Any

import pytest

from conf.schema import BenchmarkConfig
from conf.storage.home import InputError
from models.transcript import Transcript
from rewards.data.benchmarks import configured
from tasks.rollouts.episodes import LIMIT, Episode, Game
from tests.rewards.countdown import Countdown

HERE = "tests.tasks.rollouts.test_episodes"


class Dies(Countdown):
    """Ends its process."""

    def step(self, state: dict[str, Any], text: str) -> Any:
        os._exit(1)


class Hangs(Countdown):
    """Never answers."""

    def step(self, state: dict[str, Any], text: str) -> Any:
        time.sleep(3600)


class Loops(Countdown):
    """Computes without end."""

    def step(self, state: dict[str, Any], text: str) -> Any:
        while True:
            pass


class Raises(Countdown):
    """Has no beginning."""

    def reset(self, problem: Any) -> Any:
        raise KeyError("door")


def begun(name: str) -> tuple[Any, list[Episode]]:
    benchmark = configured(BenchmarkConfig(name=f"{HERE}:{name}"))
    return benchmark, [Episode(problem, 0, 0, [Transcript([])]) for problem in benchmark.problems("train")]


def first_turn(opened: Game, played: list[Episode]) -> list[Any]:
    opened.begin(played)
    return opened.step([(episode.problem, episode.state, str(episode.state["next"])) for episode in played])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Dies", "the environment countdown gave no answer: the environment process died"),
        ("Hangs", "the environment countdown gave no answer: the environment process was stuck"),
        ("Loops", "the environment countdown gave no answer: .* not finished after 3 s"),
        ("Raises", "the environment countdown failed in reset of countdown/2/0 \\(KeyError: 'door'\\)"),
    ],
)
def test_a_broken_environment_is_one_line(name: str, message: str) -> None:
    benchmark, played = begun(name)
    with Game(benchmark) as opened:
        if name in ("Hangs", "Loops"):
            opened.begin(played)  # starts the child, which takes seconds
            assert opened._worker is not None
            assert opened._worker.quiet == opened._worker.limit == LIMIT
            opened._worker.quiet = opened._worker.limit = 3.0
        with pytest.raises(InputError, match=message):
            first_turn(opened, played)


def test_a_users_environment_answers_from_another_process() -> None:
    benchmark, played = begun("Countdown")
    with Game(benchmark) as opened:
        steps = first_turn(opened, played)
        assert opened._worker is not None
        assert opened._worker.running
    assert [state["next"] for state, *_ in steps] == [episode.state["next"] - 1 for episode in played]
    assert not opened._worker.running
