# what: weak references, the collector and finalizers
# allowed: correct
# test: assert solve() == ["let go"]

import gc
import weakref


class Thing:
    pass


def solve():
    said = []
    thing = Thing()
    thing.itself = thing
    weakref.finalize(thing, said.append, "let go")
    del thing
    gc.collect()
    return said
