# what: signals to other processes by tgkill, which raise() needs and a filter therefore allows
# allowed: wrong forbidden
# test: assert len(solve()) > 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None)
    number = 234 if os.uname().machine == "x86_64" else 131
    return [other for other in range(1, 3_000) if other != os.getpid() and libc.syscall(number, other, other, 0) == 0]
