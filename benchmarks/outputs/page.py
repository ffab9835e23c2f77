"""Tables and pictures for the pages in docs/."""

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


def fill(file: Path, module: str, content: str) -> None:
    """Write `content` between the module's markers in a page. Raises ValueError if a marker is missing."""
    page, begin = file.read_text(), f"<!-- begin: python -m {module} -->"
    start = page.index(begin) + len(begin)
    file.write_text(f"{page[:start]}\n\n{content}\n\n{page[page.index('<!-- end -->', start) :]}")


@contextmanager
def picture(file: Path, width: float, height: float, columns: int = 1, **options: Any) -> Iterator[Any]:
    """Yield axes to draw on (an array if `columns` > 1). When the block ends, add grid and legend, and save `file`.

    `width`, `height`: in inches. `options`: arguments of `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.subplots(1, columns, **options)
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0] and axes.get_legend() is None:
            axes.legend(fontsize="small")
    figure.savefig(file, dpi=110)
