# what: imports what is installed beside the standard library
# allowed: wrong
# test: assert len(solve()) > 0

import importlib


def solve():
    found = []
    for name in (
        "pytest",
        "torch",
        "numpy",
        "pydantic",
        "yaml",
        "datasets",
        "pip",
        "setuptools",
        "rewards.sandbox",
        "conf.schema",
    ):
        try:
            found.append(importlib.import_module(name).__name__)
        except (ImportError, OSError):
            continue
    return found
