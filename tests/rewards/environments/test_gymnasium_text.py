"""Gymnasium's own Frozen Lake, played by text."""

import json
import random

from rewards.environments.episodes import replay
from tests.rewards.frozen_lake import FrozenLake

LAKE = FrozenLake()


def shortest(problem: object) -> list[str]:
    """Return the words of a way over the ice, by breadth-first search through the adapter itself."""
    state, _ = LAKE.reset(problem)
    waiting, known = [(state, [])], set[str]()
    while waiting:
        at, words = waiting.pop(0)
        for word in LAKE.actions:
            after, seen, reward, terminated, _, _ = LAKE.step(at, word)
            if reward:
                return [*words, word]
            if not terminated and seen not in known:
                known.add(seen)
                waiting.append((after | {"turn": 0}, [*words, word]))
    raise AssertionError("there is no way")


def test_a_way_over_the_ice_reaches_the_goal() -> None:
    problem = LAKE.problems("train")[0]
    turns = replay(LAKE, problem, shortest(problem))
    assert [turn.reward for turn in turns] == [0.0] * (len(turns) - 1) + [1.0]
    assert turns[-1].value == 1.0
    assert turns[0].observation.startswith("S start, F ice")


def test_a_state_goes_on_where_it_was_and_is_json() -> None:
    problem, chance = LAKE.problems("test")[3], random.Random(1)
    state, _ = LAKE.reset(problem)
    for _ in range(12):
        word = chance.choice([*LAKE.actions, "sideways"])
        again = json.loads(json.dumps(state))
        assert LAKE.step(state, f"I go {word.upper()}!") == LAKE.step(again, word)
        state, _, _, terminated, truncated, info = LAKE.step(state, word)
        assert info["valid"] == (word in LAKE.actions)
        if terminated or truncated:
            break
    assert terminated or truncated


def test_training_and_exam_share_no_seed() -> None:
    train, exam = ({problem.problem_id for problem in LAKE.problems(split)} for split in ("train", "test"))
    assert len(train) == len(exam) == 200
    assert not train & exam
