# what: the same by tgkill and rt_sigqueueinfo, which a filter of kill alone forgets
# allowed: wrong forbidden crashed
# test: assert len(solve()) > 1

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None)
    number = 200 if os.uname().machine == "x86_64" else 130
    return [other for other in range(1, 1_000) if other != os.getpid() and libc.syscall(number, other, 0) == 0]
