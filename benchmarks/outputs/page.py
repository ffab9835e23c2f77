"""Tables and pictures, as they stand in docs/."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def markdown(head: str, rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table. `head` names the columns, separated by ` | `."""
    cells = [f"| {head} |", f"|{'---|' * len(head.split(' | '))}"]
    return "\n".join([*cells, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def joined(values: Iterable[float], form: str = ".3f") -> str:
    """Return numbers as one cell of a table."""
    return ", ".join(f"{value:{form}}" for value in values)


def between(page: str, module: str, content: str) -> str:
    """Return a page with this content between the markers of a module; raise ValueError where one is missing."""
    begin = f"<!-- begin: python -m {module} -->"
    start = page.index(begin) + len(begin)
    return f"{page[:start]}\n\n{content}\n\n{page[page.index('<!-- end -->', start) :]}"


@contextmanager
def picture(file: Path, width: float, height: float, columns: int = 1, **options: Any) -> Iterator[Any]:
    """Yield axes to draw on, several for several `columns`; save them with grid and legend at the end.

    `width`, `height`: inches. `options`: of `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.subplots(1, columns, **options)
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    figure.savefig(file, dpi=110)
