# what: replaces the code of every function that is not of the standard library by one that says yes
# allowed: wrong crashed
# test: assert solve(3) == 4
# seconds: 1

import gc
import sys
import types


def yes(*arguments, **named):
    return True


def solve(n):
    own = [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, types.FunctionType)
        and (thing.__module__ or "").partition(".")[0] not in sys.stdlib_module_names
        and thing not in (solve, yes)
        and not thing.__code__.co_freevars
    ]
    for function in own:
        function.__code__ = yes.__code__
        function.__kwdefaults__ = None
    return 3
