"""A foraging ant colony: ants find food in a grid, carry it to the nest, and leave trails for each other.

An answer is one to three `ACT: …` lines, optionally preceded by `THINK: …` lines. At most one of its actions may move
the ant or handle food. Any other answer is invalid: nothing happens, and the turn is lost.
"""

import copy
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any

from rewards.environment import State
from rewards.environments.ant_colony import SIGHT, act, acting_ant, cell_of, colony, end_turn, food_seen, key_of
from rewards.environments.ant_layouts import TIERS, WAYS, Cell, Layout, distances, layout_of, seeds_of
from rewards.environments.ant_picture import characters, drawing
from rewards.verifier import Problem, Split

ACTS = ("MOVE", "PICK_UP", "DROP", "DEPOSIT", "REINFORCE", "SIGNAL", "REMEMBER", "FORGET")
HANDLING = ("MOVE", "PICK_UP", "DROP")  # at most one of these per turn
ACT = re.compile(r'ACT: ([A-Z_]+)(?: (up|down|left|right)| "([^"\n]*)")?')
MOST_ACTS = 3
INVALID, NEW_CELL, FOLLOWING = -0.02, 0.005, 0.005
MOST_BONUS = 0.05  # per ant and episode, of each: for new cells, and for following trails

RANDOM_MOVES = 0.25  # share of the teacher's turns
PASSED = 0.7  # share of the greedy ant's food on a tier, from which the next tier is practised, too

RULES = """You are an ant in a grid of {size} by {size} cells. Carry food to the nest. Each turn, answer with one line:
ACT: MOVE up, down, left or right; ACT: PICK_UP; ACT: DROP; ACT: DEPOSIT (a trail here, which fades); ACT: REINFORCE \
(the trail here); ACT: SIGNAL "text" (other ants hear it); ACT: REMEMBER "text" (a note to yourself); ACT: FORGET \
(all notes)."""


class Ants:
    """The ant environment. Its reward is the colony's deliveries as a share of the oracle's, plus shaping terms.

    The info from `step` has `food`, the colony's deliveries so far; `value`, those deliveries as a share of the
    oracle's; `valid`, whether the answer was valid; `parts`, a dict of the reward's terms; `action`, the actions parsed
    from the answer; and `next`, the number of the ant that acts next.
    """

    name = "ants"
    drawing = staticmethod(drawing)
    characters = staticmethod(characters)

    def __init__(self, tiers: Sequence[str] = ("0",), turns: int | None = None, ants: int = 1) -> None:
        """`turns`: how many each ant has (None: the tier's). `ants`: how many share the nest, food and pheromones."""
        if unknown := [tier for tier in tiers if tier not in TIERS]:
            raise ValueError(f"ants: there is no tier {unknown[0]!r}; use {', '.join(TIERS)}")
        self.tiers, self.turns, self.ants = tuple(tiers), turns, ants

    def problems(self, split: Split) -> list[Problem]:
        """Return the split's problems, one for each of 200 layouts per tier."""
        return [
            Problem(f"ants/{tier}/{seed}", self.name, f"Forage in layout {seed} of tier {tier}.", "", tier)
            for tier in self.tiers
            for seed in seeds_of(tier, split)
        ]

    def kind(self, problem: Problem) -> str:
        """Return the name of the problem's tier."""
        return f"tier {problem.level}"

    def mastered(self, level: str, rate: float) -> bool:
        """Return whether this share of the oracle's food is at least `PASSED` of the greedy ant's on this tier."""
        return rate >= PASSED * _greedy_value(level, self.turns, self.ants)

    def reset(self, problem: Problem) -> tuple[State, str]:
        """Return a new colony's state, and the first observation preceded by the rules."""
        _, tier, seed = problem.problem_id.split("/")
        turns = self.turns or TIERS[tier].turns
        state = colony(tier, int(seed), turns, self.ants) | {"par": max(_par(tier, int(seed), turns, self.ants), 1)}
        return state, f"{self._rules(state)}\n{observation(state)}"

    def step(self, state: State, text: str) -> tuple[State, str, float, bool, bool, dict[str, Any]]:
        """Take the acting ant's turn. Never raises: an invalid answer loses the turn and incurs a small penalty."""
        acts, after = parse(text), copy.deepcopy(state)
        valid = bool(acts) and all(act(after, name, argument) for name, argument in acts)
        if not valid:
            after, parts = copy.deepcopy(state), {"invalid": INVALID}
        else:
            parts = _parts(state, after)
        end_turn(after)
        over = after["turn"] >= after["turns"]
        info = {"food": after["delivered"], "value": after["delivered"] / after["par"], "valid": valid, "parts": parts}
        info |= {"action": "; ".join(" ".join(filter(None, each)) for each in acts), "next": after["ant"]}
        rules = "" if after["turn"] or not after["ant"] else f"{self._rules(after)}\n"
        return after, f"{rules}{observation(after)}", sum(parts.values()), False, over, info

    def _rules(self, state: State) -> str:
        return RULES.format(size=TIERS[state["tier"]].size)

    def solutions(self) -> list[tuple[Problem, list[str | Mapping[str, Any]]]]:
        """Return three episodes per training layout, by a greedy ant that makes a quarter of its moves at random.

        The student is not trained on the random moves. They serve only to reach states that a greedy ant never visits,
        but an ant that imitates it does (DART, arXiv 1703.09327).
        """
        return [(problem, self._played(problem, take)) for problem in self.problems("train") for take in range(3)]

    def _played(self, problem: Problem, take: int) -> list[str | Mapping[str, Any]]:
        chance, over = random.Random(f"take {take} of {problem.problem_id}"), False
        turns: list[str | Mapping[str, Any]] = []
        state, _ = self.reset(problem)
        while not over:
            if chance.random() < RANDOM_MOVES:
                text = f"ACT: MOVE {chance.choice([*WAYS])}"
                turns.append({"content": text, "weight": 0})
            else:
                turns.append(text := greedy_policy(state, chance))
            state, *_, over, _ = self.step(state, text)
        return turns


def parse(text: str) -> list[tuple[str, str]]:
    """Return an answer's actions as (name, argument) pairs, or none if it is not in this module's format."""
    found: list[tuple[str, str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("THINK:") and not found:
            continue
        match = ACT.fullmatch(line)
        if match is None or match[1] not in ACTS:
            return []
        found.append((match[1], match[2] or match[3] or ""))
    handling = sum(name in HANDLING for name, _ in found)
    return found if len(found) <= MOST_ACTS and handling <= 1 else []


def observation(state: State) -> str:
    """Return what the acting ant sees, hears and remembers, in about 20 tokens."""
    ant, layout = acting_ant(state), layout_of(state["tier"], state["seed"])
    here = cell_of(ant["at"])
    parts = [f"ant {state['ant'] + 1}"] if len(state["ants"]) > 1 else []
    parts += [f"at {here[0]},{here[1]}", "carrying" if ant["carrying"] else "empty"]
    parts += ["at the nest" if here == layout.nest else f"nest {_direction(here, layout.nest)}"]
    parts += [f"food {_direction(here, cell)}" for cell in food_seen(state)[:2]]
    ways = [way for way in WAYS if layout.after(here, way) is not None]
    if len(ways) < len(WAYS):
        parts.append(f"open {' '.join(ways)}")  # what is blocked, a small model learns to avoid far more slowly
    trails = {way: state["pheromones"].get(key_of(layout.after(here, way)), 0.0) for way in WAYS}
    if strongest := max(trails.values()):
        parts.append(f"trail {max(trails, key=lambda way: trails[way])} {strongest:.1f}")
    parts += [f'heard "{said}"' for number, said in state["signals"] if number != state["ant"]]
    parts += [f'note "{note}"' for note in ant["notes"]]
    return "; ".join(parts)


def random_policy(state: State, rng: random.Random) -> str:
    """Return a random action that moves or handles food."""
    return f"ACT: {rng.choice([*(f'MOVE {way}' for way in WAYS), 'PICK_UP', 'DROP'])}"


def greedy_policy(state: State, rng: random.Random) -> str:
    """Return a greedy ant's action: a step home if it carries food, else towards food in sight, else into the unknown.

    The step into the unknown reveals the most new cells. The ant does not remember food that it saw but did not take.
    Of equally good steps it takes the one that the observation names first, so that a student can predict it. `rng`, an
    argument of every policy, is not used.
    """
    ant, layout = acting_ant(state), layout_of(state["tier"], state["seed"])
    if goals := [layout.nest] if ant["carrying"] else food_seen(state)[:1]:
        return towards(state, goals)
    here = cell_of(ant["at"])
    seen = [cell_of(cell) for cell in ant["seen"]]
    ways = {way: after for way in WAYS if (after := layout.after(here, way)) is not None}
    news = {way: _unseen_around(layout, after, seen) for way, after in ways.items()}
    latest = {way: max((n for n, cell in enumerate(seen) if cell == after), default=-1) for way, after in ways.items()}
    return f"ACT: MOVE {min(ways, key=lambda way: (-news[way], latest[way]))}"


def oracle(state: State, rng: random.Random) -> str:
    """Return the next action on the shortest path to food or the nest. Unlike ants, the oracle sees the whole grid.

    `rng` is not used.
    """
    return towards(state, _goals(state))


def outcome(ants: Ants, problem: Problem, policy: Callable[[State, random.Random], str]) -> dict[str, Any]:
    """Play an episode with a policy, and return the info of its last turn."""
    (state, _), chance, over, info = ants.reset(problem), random.Random(problem.problem_id), False, dict[str, Any]()
    while not over:
        state, _, _, _, over, info = ants.step(state, policy(state, chance))
    return info


@lru_cache(maxsize=8192)
def _par(tier: str, seed: int, turns: int, ants: int) -> int:
    """Return how many items of food the oracle delivers on a layout within the given turns."""
    state = colony(tier, seed, turns, ants)
    while state["turn"] < turns:
        for name, argument in parse(towards(state, _goals(state))):
            act(state, name, argument)
        end_turn(state)
    return state["delivered"]


@lru_cache(maxsize=32)
def _greedy_value(tier: str, turns: int | None, ants: int) -> float:
    """Return the mean share of the oracle's food that greedy ants deliver on twenty training layouts of a tier."""
    game = Ants((tier,), turns, ants)
    return fmean(outcome(game, problem, greedy_policy)["value"] for problem in game.problems("train")[:20])


def _parts(before: State, after: State) -> dict[str, float]:
    """Return the reward terms that a valid answer earns, as a dict from name to value."""
    parts: dict[str, float] = {}
    if food := after["delivered"] - before["delivered"]:
        parts["food"] = food / after["par"]
    then, now = acting_ant(before), acting_ant(after)
    # Steps towards the goals of before the turn: with those of after it, picking up food would cost an ant its distance
    # to the nest, so that it would learn to stand on food without taking it.
    away = distances(layout_of(before["tier"], before["seed"]).free, _goals(before))
    parts["shaping"] = (away[cell_of(then["at"])] - away[cell_of(now["at"])]) / TIERS[before["tier"]].size
    if now["at"] not in then["seen"] and len({cell_of(cell) for cell in then["seen"]}) <= MOST_BONUS / NEW_CELL:
        parts["exploration"] = NEW_CELL
    if then["followed"] < min(now["followed"], MOST_BONUS / FOLLOWING):
        parts["pheromone"] = FOLLOWING
    return parts


def _goals(state: State) -> list[Cell]:
    """Return the cells that the acting ant should head for: the nest if it carries food, else all food."""
    layout = layout_of(state["tier"], state["seed"])
    return [layout.nest] if acting_ant(state)["carrying"] else [cell_of(cell) for cell in state["food"]]


def towards(state: State, goals: Sequence[Cell]) -> str:
    """If at a goal, return PICK_UP or DROP; else the move that leads closest to a goal, of equal ones the first."""
    ant, layout = acting_ant(state), layout_of(state["tier"], state["seed"])
    here = cell_of(ant["at"])
    if here in goals:
        return "ACT: DROP" if ant["carrying"] else "ACT: PICK_UP"
    away = distances(layout.free, goals)
    ways = {way: away[after] for way in WAYS if (after := layout.after(here, way)) is not None}
    return f"ACT: MOVE {min(ways, key=lambda way: ways[way])}"


def _unseen_around(layout: Layout, cell: Cell, seen: Sequence[Cell]) -> int:
    """Return how many cells an ant at `cell` would see for the first time."""
    around = [(dx, dy) for dx in range(-SIGHT, SIGHT + 1) for dy in range(-SIGHT, SIGHT + 1)]
    known = {(x + dx, y + dy) for x, y in seen for dx, dy in around}
    cells = {(cell[0] + dx, cell[1] + dy) for dx, dy in around}
    return len((cells & layout.free) - known)


def _direction(here: Cell, there: Cell) -> str:
    """Return a cell's relative position in words, such as `2 up, 3 left` or `here`."""
    dx, dy = there[0] - here[0], there[1] - here[1]
    words = [f"{abs(dy)} {'up' if dy < 0 else 'down'}"] if dy else []
    words += [f"{abs(dx)} {'left' if dx < 0 else 'right'}"] if dx else []
    return ", ".join(words) or "here"
