"""An ant colony's JSON state: how it starts, what each action changes, and what happens at the end of a turn."""

import json
import random
from collections.abc import Sequence
from typing import Any

from rewards.environment import State
from rewards.environments.ant_layouts import WAYS, Cell, Layout, layout_of

MOST_NOTES, LONGEST_NOTE = 3, 40
SIGHT = 1  # cells in each direction, diagonals included
FADING, FAINT = 0.95, 0.05  # once all ants have moved, pheromones are multiplied by FADING; below FAINT, they vanish


def colony(tier: str, seed: int, turns: int, ants: int) -> State:
    """Return a new colony's state, with every ant at the nest. Delivering `state["par"]` items earns a reward of 1."""
    layout = layout_of(tier, seed)
    state: State = {"tier": tier, "seed": seed, "turn": 0, "turns": turns, "par": 1, "delivered": 0, "respawned": 0}
    state |= {"food": [list(cell) for cell in layout.food], "pheromones": {}, "signals": []}
    nest = list(layout.nest)
    each = [{"at": nest, "carrying": False, "notes": [], "seen": [nest], "followed": 0} for _ in range(ants)]
    return json.loads(json.dumps(state | {"ant": 0, "ants": each}))


def act(state: State, name: str, argument: str) -> bool:
    """Perform one action of the ant whose turn it is, changing `state`. Return False if the action is impossible."""
    ant, layout = acting_ant(state), layout_of(state["tier"], state["seed"])
    here = cell_of(ant["at"])
    on = state["pheromones"].get(key_of(here), 0.0)
    match name:
        case "MOVE" if argument in WAYS and (after := layout.after(here, argument)) is not None:
            ant["at"] = list(after)
            ant["seen"].append(list(after))
            ant["followed"] += not ant["carrying"] and key_of(after) in state["pheromones"]
        case "PICK_UP" if not argument and not ant["carrying"] and list(here) in state["food"]:
            ant["carrying"] = True
            state["food"].remove(list(here))
            state["food"].append(_new_food(state, layout))
        case "DROP" if not argument and ant["carrying"] and here == layout.nest:  # elsewhere, food would multiply
            ant["carrying"] = False
            state["delivered"] += 1
        case "DEPOSIT" if not argument:
            state["pheromones"][key_of(here)] = max(on, 1.0)
        case "REINFORCE" if not argument and on:
            state["pheromones"][key_of(here)] = min(on + 0.5, 2.0)
        case "SIGNAL" if argument:
            state["signals"] = [*state["signals"], [state["ant"], argument[:LONGEST_NOTE]]]
        case "REMEMBER" if argument:
            ant["notes"] = [*ant["notes"], argument[:LONGEST_NOTE]][-MOST_NOTES:]
        case "FORGET" if not argument and ant["notes"]:
            ant["notes"] = []
        case _:
            return False
    return True


def end_turn(state: State) -> None:
    """Pass the turn to the next ant and clear that ant's old signals. After the last ant's turn, pheromones fade."""
    state["ant"] = (state["ant"] + 1) % len(state["ants"])
    if state["ant"] == 0:
        state["turn"] += 1
        faded = {cell: round(FADING * strength, 4) for cell, strength in state["pheromones"].items()}
        state["pheromones"] = {cell: strength for cell, strength in faded.items() if strength >= FAINT}
    state["signals"] = [said for said in state["signals"] if said[0] != state["ant"]]


def food_seen(state: State) -> list[Cell]:
    """Return the cells with food that the acting ant can see, nearest first."""
    x, y = cell_of(acting_ant(state)["at"])
    cells = map(cell_of, state["food"])
    near = [(i, j) for i, j in cells if abs(i - x) <= SIGHT and abs(j - y) <= SIGHT]
    return sorted(near, key=lambda cell: (abs(cell[0] - x) + abs(cell[1] - y), cell))


def acting_ant(state: State) -> dict[str, Any]:
    """Return the ant whose turn it is."""
    return state["ants"][state["ant"]]


def cell_of(pair: Sequence[int]) -> Cell:
    """Convert a cell from its form in a state (a JSON list) to the tuple that layouts use."""
    return pair[0], pair[1]


def key_of(cell: Cell | None) -> str:
    """Return a cell's key in the state's `pheromones`, or an empty string for None."""
    return "" if cell is None else f"{cell[0]},{cell[1]}"


def _new_food(state: State, layout: Layout) -> list[int]:
    """Return a random free cell in which food reappears. The seed is the layout and the number of reappearances."""
    state["respawned"] += 1
    taken = {layout.nest, *map(cell_of, state["food"])}
    chance = random.Random(f"{layout.digest} {state['respawned']}")
    return list(chance.choice(sorted(layout.free - taken)))
