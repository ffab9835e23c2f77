"""A benchmark by the name that a configuration calls it."""

from collections.abc import Sequence

from conf.home import InputError
from rewards.arithmetic import Arithmetic
from rewards.gsm8k import Gsm8k
from rewards.verifier import Benchmark


def load(name: str, source: str | None = None, levels: Sequence[str] | None = None) -> Benchmark:
    """The benchmark `name`, its data from `source` (a folder; None: its default), only `levels` (None: all).

    Reads no data yet. Raises InputError for an unknown name, source or level.
    """
    match name:
        case "arithmetic":
            return Arithmetic(source, levels)
        case "gsm8k":
            return Gsm8k(source, levels)
        case _:
            raise InputError(f"no benchmark is called {name!r}; there are arithmetic and gsm8k")
