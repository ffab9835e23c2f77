# what: type hints of every kind, a Protocol, a TypeVar and an Enum
# allowed: correct
# test: assert solve([1, 2, 3], 2) == {"odd": [1, 3], "even": [2]}

from enum import Enum
from typing import Dict, Generic, List, NamedTuple, Optional, Protocol, TypedDict, TypeVar, Union

T = TypeVar("T")


class Parity(Enum):
    ODD = "odd"
    EVEN = "even"


class Keyed(Protocol):
    def key(self) -> str: ...


class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item: T = item


class Row(TypedDict, total=False):
    name: str


class Pair(NamedTuple):
    key: str
    value: int


def solve(values: List[int], base: Optional[Union[int, None]] = None) -> Dict[str, List[int]]:
    out: Dict[str, List[int]] = {}
    for value in map(Box, values):
        pair = Pair((Parity.EVEN if value.item % 2 == 0 else Parity.ODD).value, value.item)
        out.setdefault(pair.key, []).append(pair.value)
    return out
