# what: asks for its process number by the numbers of the x32 interface
# allowed: forbidden crashed
# test: assert solve() > 0

import ctypes
import os
import platform


def solve():
    if platform.machine() != "x86_64":
        raise OSError("x86-64 only")
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.syscall(0x40000000 | 39)
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number
