# what: lifts its limit on core files and crashes, so that its memory lies in a file
# allowed: crashed forbidden
# test: assert solve() == 4

import ctypes
import resource


def solve():
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass
    return ctypes.string_at(8)
