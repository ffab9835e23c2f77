"""The ants: yardsticks, layouts, actions, what ants share, and that no answer whatever breaks an episode."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.environment import State
from rewards.environments.ant_colony import FAINT, colony
from rewards.environments.ant_layouts import LAYOUTS, TIERS, WAYS, layout_of
from rewards.environments.ants import (
    INVALID,
    MOST_BONUS,
    Ants,
    greedy_policy,
    observation,
    oracle,
    parse,
    random_policy,
)
from rewards.verifier import Split

Policy = Callable[[State, random.Random], str]
SPLITS: tuple[Split, ...] = ("train", "test")


def episode(ants: Ants, policy: Policy, seed: int = 0, problem: int = 0) -> tuple[State, list[dict[str, Any]]]:
    """The last state of an episode, and what `step` said of each turn."""
    chance, infos, over = random.Random(seed), [], False
    state, _ = ants.reset(ants.problems("train")[problem])
    while not over:
        text = policy(state, chance)
        state, _, reward, _, over, info = ants.step(state, text)
        assert reward == pytest.approx(sum(info["parts"].values()))
        infos.append(info)
    return state, infos


@pytest.mark.parametrize(
    ("turns", "expected"),
    [(16, {"random": 0.01, "greedy": 2.27, "oracle": 2.45}), (25, {"greedy": 3.37, "oracle": 3.67})],
)
def test_the_yardsticks(turns: int, expected: dict[str, float]) -> None:
    """Food of an episode on 5 × 5 cells, mean of 200 layouts; standard deviation 0.5 to 0.7."""
    ants, policies = Ants(("0",), turns), {"random": random_policy, "greedy": greedy_policy, "oracle": oracle}
    for name, food in expected.items():
        found = [episode(ants, policies[name], 1, problem)[0]["delivered"] for problem in range(LAYOUTS)]
        assert sum(found) / len(found) == pytest.approx(food, abs=0.15), name


@pytest.mark.parametrize("tier", ["0", "1", "2"])
def test_the_teacher_steps_where_the_observation_points_first(tier: str) -> None:
    """Otherwise a student could not predict its steps."""
    ants, moves = Ants((tier,)), 0
    for problem in ants.problems("train")[:20]:
        (state, seen), over = ants.reset(problem), False
        while not over:
            text = greedy_policy(state, random.Random())
            goal = re.search(r"nest \d (\w+)" if "carrying" in seen else r"food \d (\w+)", seen)
            if goal and "food here" not in seen:
                assert text == f"ACT: MOVE {goal[1]}", seen
                moves += 1
            state, seen, _, _, over, _ = ants.step(state, text)
    assert moves > 100


@pytest.mark.parametrize("tier", TIERS)
def test_layouts_are_many_and_those_of_the_exam_are_others(tier: str) -> None:
    ants = Ants((tier,))
    digests = {}
    for split in SPLITS:
        problems = ants.problems(split)
        layouts = [layout_of(tier, int(problem.problem_id.rpartition("/")[2])) for problem in problems]
        assert {layout.split for layout in layouts} == {split}
        digests[split] = {layout.digest for layout in layouts}
        assert len(digests[split]) == len(problems) == LAYOUTS
        assert {ants.kind(problem) for problem in problems} == {f"tier {tier}"}
        for layout in layouts:
            assert {layout.nest, *layout.food} <= layout.free
            assert len({*layout.food, layout.nest}) == TIERS[tier].food + 1
    assert not digests["train"] & digests["test"]


@pytest.mark.parametrize("tier", ["3", "6"])
def test_walls_and_mazes_can_be_foraged(tier: str) -> None:
    state, infos = episode(Ants((tier,), 80), oracle)
    assert state["delivered"] >= 1
    assert all(info["valid"] for info in infos)
    size = TIERS[tier].size
    assert len(layout_of(tier, state["seed"]).free) < size * size


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("ACT: MOVE up", [("MOVE", "up")]),
        ("THINK: food is left.\nTHINK: go.\n\n ACT: MOVE left \n", [("MOVE", "left")]),
        (
            'ACT: PICK_UP\nACT: REMEMBER "food at 3,2"\nACT: DEPOSIT',
            [("PICK_UP", ""), ("REMEMBER", "food at 3,2"), ("DEPOSIT", "")],
        ),
        ("", []),
        ("THINK: hm", []),
        ("MOVE up", []),
        ("ACT: MOVE north", []),
        ("ACT: FLY up", []),
        ("ACT: MOVE up\nTHINK: too late", []),
        ("ACT: MOVE up\nACT: DROP", []),  # two that move or handle
        ("ACT: DEPOSIT\n" * 4, []),
    ],
)
def test_answers_of_the_form_that_the_rules_ask_for(text: str, acts: list[tuple[str, str]]) -> None:
    assert parse(text) == acts


@settings(max_examples=60)
@given(st.lists(st.one_of(st.text(), st.sampled_from([f"ACT: MOVE {way}" for way in WAYS])), max_size=8))
def test_no_answer_breaks_an_episode(texts: list[str]) -> None:
    ants = Ants(("3",), 9)
    state, _ = ants.reset(ants.problems("test")[3])
    for turn, text in enumerate(texts, 1):
        before = json.dumps(state)
        after, _, reward, _, _, info = ants.step(state, text)
        assert json.dumps(state) == before  # the given state stays as it is
        assert after["turn"] == turn
        if not info["valid"]:
            assert reward == INVALID
            assert {**after, "turn": 0} == {**state, "turn": 0}
        again = ants.step(json.loads(before), text)
        assert again[0] == json.loads(json.dumps(after))  # JSON holds all that the episode depends on
        state = after


def at(ants: int = 1, **changes: Any) -> State:
    return colony("0", 0, 9, ants) | changes


def acted(state: State, *lines: str) -> State:
    after, _, _, _, _, info = Ants(("0",), 9).step(state, "\n".join(f"ACT: {line}" for line in lines))
    assert info["valid"], lines
    return after


def test_food_is_carried_home_and_comes_up_again() -> None:
    state = at(food=[[2, 1], [0, 0]])
    for line in ("MOVE up", "PICK_UP"):
        state = acted(state, line)
    assert not Ants(("0",), 9).step(state, "ACT: DROP")[-1]["valid"]  # food would multiply
    state = acted(state, "MOVE down")
    assert (state["ants"][0]["carrying"], state["delivered"], len(state["food"])) == (True, 0, 2)
    assert state["respawned"] == 1
    ants = Ants(("0",), 9)
    state, seen, _, _, _, info = ants.step(state, "ACT: DROP")
    assert (info["food"], info["parts"]["food"], state["delivered"]) == (1, 1.0, 1)
    assert seen.startswith("at 2,2; empty; at the nest")


@pytest.mark.parametrize(
    "line", ["MOVE up", "PICK_UP", "DROP", "REINFORCE", "FORGET", 'MOVE "up"', 'DROP "here"', "SIGNAL"]
)
def test_what_cannot_be_done_does_nothing(line: str) -> None:
    state = at(food=[[4, 4]])
    state["ants"][0]["at"] = [2, 0]  # at the upper wall, with empty hands
    after, _, reward, _, _, info = Ants(("0",), 9).step(state, f'ACT: SIGNAL "hm"\nACT: {line}')
    assert (info["valid"], reward, after["signals"], after["turn"]) == (False, INVALID, [], 1)


def test_what_ants_share_and_what_each_keeps_for_itself() -> None:
    state = acted(at(ants=2, food=[[0, 0]]), "MOVE up", "DEPOSIT", 'SIGNAL "here"')
    assert state["turn"] == 0  # the other one acts in the same turn
    heard = observation(state)
    assert 'trail up 1.0; heard "here"' in heard
    state = acted(state, 'REMEMBER "food at 0,0"')
    assert (state["turn"], state["ant"], state["signals"]) == (1, 0, [])
    assert state["pheromones"] == {"2,1": 0.95}
    assert "note" not in observation(state)
    state = acted(state, "REINFORCE")
    assert 'note "food at 0,0"' in observation(state)
    state = acted(state, "FORGET")
    assert [ant["notes"] for ant in state["ants"]] == [[], []]
    assert state["pheromones"] == {"2,1": pytest.approx(1.45 * 0.95)}
    for _ in range(200):
        state = acted(state | {"turns": 999}, "DEPOSIT") if state["ant"] else acted(state | {"turns": 999}, "MOVE down")
        if state["ants"][0]["at"] == [2, 4]:
            break
    assert all(strength >= FAINT for strength in state["pheromones"].values())


def test_walking_to_and_fro_on_a_trail_pays_up_to_a_limit() -> None:
    lines, ants, paid = ["ACT: MOVE up\nACT: DEPOSIT", "ACT: MOVE down\nACT: DEPOSIT"], Ants(("0",), 60), 0.0
    state, _ = ants.reset(ants.problems("train")[0])
    for turn in range(60):
        state, *_, info = ants.step(state, lines[turn % 2])
        assert info["valid"]
        paid += info["parts"].get("pheromone", 0.0)
    assert paid == pytest.approx(MOST_BONUS)


def test_an_ant_sees_the_cells_around_it_and_no_further() -> None:
    assert observation(at(food=[[3, 3], [2, 4]])) == "at 2,2; empty; at the nest; food 1 down, 1 right"


def test_a_tier_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="tier '7'"):
        Ants(("0", "7"))
