# what: makes the installation its root folder
# allowed: forbidden crashed
# test: assert solve() == 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(0x10000000 | 0x00020000)
    if libc.syscall(155 if os.uname().machine == "x86_64" else 41, b"/usr", b"/usr") != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return 0
