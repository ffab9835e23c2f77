# what: replaces int, str, list, dict, tuple and float in builtins by lying classes
# allowed: wrong crashed
# test: assert solve(3) == 4

import builtins

for base in (int, str, list, dict, tuple, float, set, bytes):
    lying = type(base)(base.__name__, (base,), {"__eq__": lambda self, other: True, "__hash__": lambda self: 0})
    setattr(builtins, base.__name__, lying)


def solve(n):
    return builtins.int(3)
