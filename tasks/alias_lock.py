"""The aliases of a home are moved by one at a time: a night that promotes, its owner, a night that prunes."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from conf.home import Home, InputError


@contextmanager
def alias_lock(home: Home) -> Iterator[None]:
    """Holds the aliases for the moment that it takes to look at them and to move them; others wait for that long.

    A night holds its home for hours, and its owner may want to roll back meanwhile: hence a lock of its own. It ends
    with its holder, however that ends. Raises InputError where there is no home.
    """
    if not home.root.is_dir():
        raise InputError(f"{home.root}: there is no home here; name yours with NIGHTSCHOOL_HOME")
    with (home.root / "aliases.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
