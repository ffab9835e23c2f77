"""The command line of a benchmark that sweeps over arms and seeds."""

import argparse
from collections.abc import Collection, Mapping
from typing import Any


def options(doc: str | None, defaults: Mapping[str, Any], **choices: Collection[str]) -> argparse.Namespace:
    """Return the command line's options. `doc`: what --help prints. `choices`: all that an option may be.

    The default decides what an option takes: a list any number of its kind (an empty one: of texts), even none; a tuple
    or mapping some of its names, by default all; a type one value, and it must be given.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        allowed = choices.get(name.removeprefix("--"))
        if isinstance(default, type):
            parser.add_argument(name, type=default, required=True)
        elif default == []:
            parser.add_argument(name, nargs="*", action="extend", default=[])
        elif isinstance(default, list):
            parser.add_argument(name, nargs="*", type=type(default[0]), default=default, choices=allowed)
        elif isinstance(default, (tuple, Mapping)):
            parser.add_argument(name, nargs="*", default=[*default], choices=default)
        else:
            parser.add_argument(name, type=type(default), default=default, choices=allowed)
    return parser.parse_args()
