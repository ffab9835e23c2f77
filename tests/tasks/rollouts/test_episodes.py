"""A user's environment plays in a process of its own, within a limit; one that dies is one line."""

import os
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


def first_turn(name: str) -> tuple[Game, list[Episode], list[Any]]:
    benchmark = configured(BenchmarkConfig(name=f"{HERE}:{name}"))
    played = [Episode(problem, 0, 0, [Transcript([])]) for problem in benchmark.problems("train")]
    with Game(benchmark) as opened:
        opened.begin(played)
        steps = opened.step([(episode.problem, episode.state, str(episode.state["next"])) for episode in played])
        assert opened._worker is not None
        assert opened._worker.running
    return opened, played, steps


def test_an_environment_that_dies_is_one_line() -> None:
    with pytest.raises(InputError, match="the environment countdown gave no answer: the environment process died"):
        first_turn("Dies")


def test_a_users_environment_answers_from_another_process_within_a_limit() -> None:
    """One that hangs dies at the limit: tests/tasks/workers/test_worker.py."""
    opened, played, steps = first_turn("Countdown")
    assert [state["next"] for state, *_ in steps] == [episode.state["next"] - 1 for episode in played]
    worker: Any = opened._worker
    assert worker.quiet == worker.limit == LIMIT
    assert not worker.running
