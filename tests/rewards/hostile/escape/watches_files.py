# what: watches what other programs of the machine open
# allowed: forbidden crashed
# test: assert solve() > 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(300 if os.uname().machine == "x86_64" else 262, 0, 0)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
