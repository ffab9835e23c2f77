# what: leaves a message in modules, builtins, interned caches and the environment, and looks for an earlier one
# allowed: wrong
# test: assert len(solve()) > 0

import builtins
import json
import os
import sys
import tempfile


def solve():
    found = [
        thing.__name__ if hasattr(thing, "__name__") else "environment"
        for thing in (builtins, json, sys, tempfile)
        if hasattr(thing, "nightschool_hostile_message")
    ]
    if "NIGHTSCHOOL_HOSTILE_MESSAGE" in os.environ:
        found.append("environment")
    for thing in (builtins, json, sys, tempfile):
        thing.nightschool_hostile_message = "left"
    os.environ["NIGHTSCHOOL_HOSTILE_MESSAGE"] = "left"
    return found
