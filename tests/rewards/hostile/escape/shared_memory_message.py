# what: leaves a message in System V shared memory and looks for one
# allowed: forbidden crashed
# test: assert solve() >= 0
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    block = libc.shmget(0x4E534831, 4096, 0o1666)
    if block < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.shmctl(block, 0, None)
    return block
