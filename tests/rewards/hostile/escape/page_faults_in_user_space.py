# what: opens userfaultfd, with which races in the kernel are won
# allowed: forbidden crashed
# test: assert solve() >= 0
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(323 if os.uname().machine == "x86_64" else 282, 1)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
