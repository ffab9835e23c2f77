# what: lifts the limit of its stack, as honest deep recursions do, and those of memory with it
# allowed: wrong forbidden crashed
# test: assert solve() == 1 << 33

import resource


def solve():
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 26, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
    raise RuntimeError("lifted")
