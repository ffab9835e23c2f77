# what: dataclasses, which look up their own module while they are made
# allowed: correct
# test: assert solve(3, 4) == 5.0

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(order=True, frozen=True)
class Point:
    x: float
    y: float
    tags: list[str] = field(default_factory=list, compare=False)

    def norm(self) -> float:
        return (self.x**2 + self.y**2) ** 0.5


def solve(x, y):
    return Point(x, y).norm()
