"""Greedy ants that also use trails, signals or notes."""

import random

from rewards.environment import State
from rewards.environments.ant_colony import acting_ant, cell_of, food_seen, key_of
from rewards.environments.ant_layouts import WAYS, Cell, distances, layout_of
from rewards.environments.ants import greedy_policy, towards

LATELY = 4  # cells: an ant that follows a trail doesn't turn back


def with_trails(state: State, rng: random.Random) -> str:
    """Leave a trail on the way home. An ant that neither carries nor sees food follows a trail away from the nest."""
    ant, layout = acting_ant(state), layout_of(state["tier"], state["seed"])
    here, away = cell_of(ant["at"]), distances(layout.free, [layout.nest])
    if ant["carrying"] and here != layout.nest:
        return f"ACT: DEPOSIT\n{greedy_policy(state, rng)}"
    strength: dict[str, float] = {}
    for way in WAYS:
        after = layout.after(here, way)
        if after and away[after] > away[here] and list(after) not in ant["seen"][-LATELY:]:
            strength[way] = state["pheromones"].get(key_of(after), 0.0)
    if ant["carrying"] or food_seen(state) or not any(strength.values()):
        return greedy_policy(state, rng)
    return f"ACT: MOVE {max(strength, key=lambda way: strength[way])}"


def with_signals(state: State, rng: random.Random) -> str:
    """Signal visible food that the ant won't take next. An ant that sees no food goes to the nearest signal."""
    heard = [_cell(said) for number, said in state["signals"] if number != state["ant"]]
    spare = _spare(state)
    said = f'\nACT: SIGNAL "{spare[0][0]},{spare[0][1]}"' if spare else ""
    return _towards_any(state, heard, rng) + said


def with_notes(state: State, rng: random.Random) -> str:
    """Note a visible cell with food that the ant won't take next, and return to it when no food is in sight."""
    ant, spare = acting_ant(state), _spare(state)
    known = [_cell(note) for note in ant["notes"]][-1:]
    if known == [cell_of(ant["at"])]:
        return f"{greedy_policy(state, rng)}\nACT: FORGET"
    noted = f'\nACT: REMEMBER "{spare[0][0]},{spare[0][1]}"' if spare and known != spare[:1] else ""
    return _towards_any(state, known, rng) + noted


def _spare(state: State) -> list[Cell]:
    """Return the cells with food that the ant sees but won't take next."""
    seen = food_seen(state)
    return seen if acting_ant(state)["carrying"] else seen[1:]


def _towards_any(state: State, cells: list[Cell], rng: random.Random) -> str:
    """Return a step to the nearest cell if the ant neither carries nor sees food; else a greedy ant's action."""
    ant = acting_ant(state)
    if ant["carrying"] or food_seen(state) or not cells or cell_of(ant["at"]) in cells:
        return greedy_policy(state, rng)
    return towards(state, cells)


def _cell(text: str) -> Cell:
    across, down = text.split(",")
    return int(across), int(down)
