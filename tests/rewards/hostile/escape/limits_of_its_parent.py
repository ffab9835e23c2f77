# what: changes a limit of the process that started it (to what it is)
# allowed: forbidden crashed
# test: assert solve() is True

import os
import resource


def solve():
    for process in (os.getppid(), 1, 2):
        if process not in (0, os.getpid()):
            resource.prlimit(process, resource.RLIMIT_CORE, resource.prlimit(process, resource.RLIMIT_CORE))
            return True
    raise PermissionError("there is no other process")
