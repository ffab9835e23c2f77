"""The grids that ants forage in. There are seven tiers, from open fields to mazes; each has training and exam grids."""

import hashlib
import json
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from rewards.verifier import Split

Cell = tuple[int, int]

WAYS: Mapping[str, Cell] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
LAYOUTS = 200  # per tier and split


@dataclass(frozen=True)
class Tier:
    """The parameters of one difficulty level. `walls` is the share of cells that are walls; None means a maze."""

    size: int
    food: int
    turns: int
    walls: float | None = 0.0


TIERS: Mapping[str, Tier] = {
    "0": Tier(5, 3, 16),
    "1": Tier(7, 4, 28),
    "2": Tier(10, 5, 40),
    "3": Tier(10, 5, 50, 0.15),
    "4": Tier(15, 6, 80, None),
    "5": Tier(20, 8, 120, None),
    "6": Tier(30, 10, 200, None),
}


@dataclass(frozen=True)
class Layout:
    """An episode's starting grid. `free` holds the cells that can be reached from the nest; all others are walls."""

    tier: str
    nest: Cell
    free: frozenset[Cell]
    food: tuple[Cell, ...]

    @cached_property
    def digest(self) -> str:
        """A digest of the grid and its food. It decides the split and seeds the choice of where food reappears."""
        return hashlib.sha256(json.dumps([self.tier, sorted(self.free), sorted(self.food)]).encode()).hexdigest()

    @property
    def split(self) -> Split:
        """The split that the layout belongs to."""
        return "test" if int(self.digest[0], 16) % 2 else "train"

    def after(self, cell: Cell, way: str) -> Cell | None:
        """Return the neighbour of `cell` in the direction `way`, or None if it is a wall or outside the grid."""
        x, y = WAYS[way]
        found = (cell[0] + x, cell[1] + y)
        return found if found in self.free else None


@lru_cache(maxsize=8192)
def layout_of(tier: str, seed: int) -> Layout:
    """Generate a seed's layout: a nest in the middle, the cells that can be reached from the nest, and random food."""
    its, chance = TIERS[tier], random.Random(f"ants {tier} {seed}")
    if its.walls is None:
        middle, open_cells = 2 * (its.size // 4), _maze(its.size, chance)
    else:
        middle = its.size // 2
        cells = [(x, y) for y in range(its.size) for x in range(its.size)]
        open_cells = {cell for cell in cells if cell == (middle, middle) or chance.random() >= its.walls}
    nest = (middle, middle)
    free = frozenset(distances(frozenset(open_cells), [nest]))
    food = chance.sample(sorted(free - {nest}), its.food)
    return Layout(tier, nest, free, tuple(food))


def _maze(size: int, chance: random.Random) -> set[Cell]:
    """Return a maze's open cells: a random tree over the cells with even coordinates, plus some loops."""
    rooms = range(0, size, 2)
    start = (2 * (size // 4), 2 * (size // 4))
    open_cells, stack = {start}, [start]
    while stack:
        x, y = stack[-1]
        ways = [(x + 2 * dx, y + 2 * dy) for dx, dy in WAYS.values()]
        ways = [(i, j) for i, j in ways if i in rooms and j in rooms and (i, j) not in open_cells]
        if not ways:
            stack.pop()
            continue
        i, j = chance.choice(ways)
        open_cells |= {(i, j), ((x + i) // 2, (y + j) // 2)}
        stack.append((i, j))
    walls = [(x, y) for x in range(size - 1) for y in range(size - 1) if (x + y) % 2 and (x, y) not in open_cells]
    return open_cells | {wall for wall in walls if chance.random() < 0.1}


@lru_cache(maxsize=16)
def seeds_of(tier: str, split: Split) -> tuple[int, ...]:
    """Return the seeds of 200 distinct layouts from one tier and split."""
    found: dict[str, int] = {}
    seed = 0
    while len(found) < LAYOUTS:
        layout = layout_of(tier, seed)
        if layout.split == split:
            found.setdefault(layout.digest, seed)
        seed += 1
    return tuple(found.values())


def distances(free: frozenset[Cell], goals: Sequence[Cell]) -> Mapping[Cell, int]:
    """Return the number of steps from each cell to its nearest goal, for every cell that can reach one."""
    found, waiting = dict.fromkeys(goals, 0), deque(goals)
    while waiting:
        x, y = cell = waiting.popleft()
        for dx, dy in WAYS.values():
            if (after := (x + dx, y + dy)) in free and after not in found:
                found[after] = found[cell] + 1
                waiting.append(after)
    return found
