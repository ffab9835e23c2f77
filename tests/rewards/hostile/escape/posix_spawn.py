# what: starts a program by posix_spawn
# allowed: forbidden crashed
# test: assert solve() == 0

import os


def solve():
    process = os.posix_spawn("/bin/true", ["true"], {})
    return os.waitpid(process, 0)[1]
