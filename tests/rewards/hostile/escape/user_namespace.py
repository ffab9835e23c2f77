# what: makes itself root of a user namespace of its own, which opens the kernel's larger half
# allowed: forbidden crashed
# test: assert solve() == 0
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return 0
