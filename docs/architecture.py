"""Draw docs/architecture.png: the rooms of the code, and the data flow of a night by its declared plan.

python -m docs.architecture
"""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from conf.load import STARTER, load_night
from tasks.plan import Plan, plan_night, plan_round

ROOT = Path(__file__).parents[1]
LAYERS = (("flows",), ("tasks",), ("rewards", "models"), ("conf",))
COLOURS = {"flows": "#dbe8f6", "tasks": "#dff0e0", "rewards": "#f9ecd2", "models": "#f6dfdf", "conf": "#e9e4f2"}
TABLES = {"select_prompts": "PROMPTS", "sample": "ROLLOUTS", "score": "SCORES", "credit": "ADVANTAGES"}
PER_ROW = 6  # rooms
EDGE = "#5a6b7b"


def main() -> None:
    """Draw the picture."""
    figure, (rooms, night, a_round) = plt.subplots(3, 1, figsize=(15, 15), height_ratios=(10, 4, 1.3))
    _draw_rooms(rooms)
    plan = plan_night(load_night(STARTER, ["grpo.rounds=3"]))
    _draw_plan(night, plan, "A night, here of three rounds: its main stages, and what each takes from which")
    _draw_plan(a_round, plan_round(load_night(STARTER)), "A round: in capitals, the tables of tasks/tables.py")
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("architecture.png"), dpi=80)


def _draw_rooms(axes: Axes) -> None:
    """A band a layer, a box a package with its first docstring line; upper layers import lower ones."""
    axes.set_title("Rooms: a package imports only from the bands below its own", loc="left", fontsize=14)
    top = 0.0
    for layer in LAYERS:
        start, deepest = 0.0, top
        width = 1 / len(layer)
        for package in layer:
            per_row = PER_ROW // len(layer)
            folders = [folder.parent for folder in sorted((ROOT / package).glob("*/__init__.py"))]
            axes.text(start, top - 0.35, f"{package}/", fontsize=13, weight="bold")
            axes.text(start + 0.075, top - 0.35, _summary(ROOT / package), fontsize=10)
            for number, folder in enumerate(folders):
                row, column = divmod(number, per_row)
                left, upper = start + width * column / per_row, top - 0.6 - 1.6 * row
                _box(axes, left, upper, width / per_row - 0.008, 1.45, COLOURS[package])
                axes.text(left + 0.006, upper - 0.35, folder.name, fontsize=11, weight="bold")
                _wrapped(axes, left + 0.006, upper - 0.65, _summary(folder), 26)
                deepest = min(deepest, upper - 1.6)
            start += width
        top = deepest - 0.25
    axes.set_xlim(0, 1)
    axes.set_ylim(top, 0.1)
    axes.axis("off")


def _summary(folder: Path) -> str:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    return docstring.splitlines()[0] if docstring else ""


def _box(axes: Axes, left: float, upper: float, width: float, height: float, colour: str) -> None:
    axes.add_patch(plt.Rectangle((left, upper - height), width, height, facecolor=colour, edgecolor="white"))


def _wrapped(axes: Axes, left: float, upper: float, text: str, width: int) -> None:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > width:
            lines, line = [*lines, line], word
        else:
            line = f"{line} {word}".strip()
    axes.text(left, upper, "\n".join([*lines, line]), fontsize=9, va="top")


def _draw_plan(axes: Axes, plan: Plan, title: str) -> None:
    """The stages that every night has, in columns by their distance from the start, and an arrow for each input."""
    axes.set_title(title, loc="left", fontsize=14)
    always = {stage.path: stage.path for stage in plan.stages if not stage.optional}
    inputs = {path: plan.upstream(path, always) for path in always}
    position = _positions(inputs)
    for path, taken in inputs.items():
        x, y = position[path]
        for source in taken:
            from_x, from_y = position[source]
            bend = f"arc3,rad={0.25 if x - from_x > 1 and y == from_y else 0}"
            arrow = {"arrowstyle": "->", "color": EDGE, "shrinkA": 26, "shrinkB": 30, "connectionstyle": bend}
            axes.annotate("", (x, y), (from_x, from_y), arrowprops=arrow, zorder=1)
        name = path.replace("/", "\n").replace("_", "\n") + (f"\n{TABLES[path]}" if path in TABLES else "")
        style = {"boxstyle": "round", "facecolor": COLOURS["tasks"], "edgecolor": EDGE}
        axes.text(x, y, name, ha="center", va="center", fontsize=10, bbox=style, zorder=2)
    axes.set_xlim(-0.5, max(x for x, _ in position.values()) + 0.5)
    axes.set_ylim(min(y for _, y in position.values()) - 0.6, max(y for _, y in position.values()) + 0.6)
    axes.axis("off")


def _positions(inputs: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, float]]:
    """By stage: its column, which is its distance from the start, and its row, centred in the column."""
    column: dict[str, int] = {}
    for path, taken in inputs.items():
        column[path] = max((column[source] + 1 for source in taken), default=0)
    members = {number: [path for path in column if column[path] == number] for number in column.values()}
    return {path: (at, (len(members[at]) - 1) / 2 - members[at].index(path)) for path, at in column.items()}


if __name__ == "__main__":
    main()
