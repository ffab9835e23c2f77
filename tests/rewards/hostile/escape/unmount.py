# what: takes a mount away, to see what lies under it
# allowed: forbidden crashed
# test: assert solve() == 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(0x10000000 | 0x00020000)
    if libc.umount2(b"/usr", 2) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return 0
