"""Draws a colony as SVG in the report page's colours, or as text for terminals."""

from typing import Any

from rewards.environment import State
from rewards.environments.ant_layouts import TIERS, layout_of

SIDE = 20  # side of a cell in SVG units


def drawing(state: State) -> str:
    """Return an SVG of the grid: walls, nest, food, fading trails, and the ants with the food they carry."""
    layout, size = layout_of(state["tier"], state["seed"]), TIERS[state["tier"]].size
    whole = SIDE * size
    shapes = [f'<rect width="{whole}" height="{whole}" fill="var(--panel)"/>']
    cells = [(x, y) for y in range(size) for x in range(size)]
    shapes += [_square(cell, "var(--muted)") for cell in cells if cell not in layout.free]
    shapes += [f'<path d="M{at} 0V{whole}M0 {at}H{whole}" stroke="var(--rule)"/>' for at in range(0, whole + 1, SIDE)]
    for place, strength in state["pheromones"].items():
        x, y = map(int, place.split(","))
        shapes.append(_square((x, y), "var(--second)", min(strength, 2.0) / 3))
    shapes.append(_circle(layout.nest, 8, 'fill="none" stroke="var(--ink)" stroke-width="2"'))
    shapes += [_circle(cell, 4, 'fill="var(--good)"') for cell in state["food"]]
    for ant in state["ants"]:
        shapes.append(_circle(ant["at"], 5, 'fill="var(--first)"'))
        if ant["carrying"]:
            shapes.append(_circle(ant["at"], 2.5, 'fill="var(--good)"'))
    label = f"{size} by {size} cells, {state['delivered']} food delivered"
    return f'<svg viewBox="0 0 {whole} {whole}" role="img" aria-label="{label}">{"".join(shapes)}</svg>'


def characters(state: State) -> str:
    """Return the grid as text: `.` free, `#` wall, `N` nest, `f` food, `:` trail, `a` ant, `A` ant carrying food."""
    layout, size = layout_of(state["tier"], state["seed"]), TIERS[state["tier"]].size
    grid = [["." if (x, y) in layout.free else "#" for x in range(size)] for y in range(size)]

    def put(cell: Any, character: str) -> None:
        grid[cell[1]][cell[0]] = character

    for place in state["pheromones"]:
        put([*map(int, place.split(","))], ":")
    put(layout.nest, "N")
    for cell in state["food"]:
        put(cell, "f")
    for ant in state["ants"]:
        put(ant["at"], "A" if ant["carrying"] else "a")
    return "\n".join(" ".join(row) for row in grid)


def _square(cell: tuple[int, int], fill: str, opacity: float = 1.0) -> str:
    x, y = cell
    return f'<rect x="{SIDE * x}" y="{SIDE * y}" width="{SIDE}" height="{SIDE}" fill="{fill}" opacity="{opacity:.2f}"/>'


def _circle(cell: Any, radius: float, style: str) -> str:
    x, y = (SIDE * place + SIDE / 2 for place in cell)
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {style}/>'
