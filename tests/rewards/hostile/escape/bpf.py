# what: makes a map in the kernel
# allowed: forbidden crashed
# test: assert solve() >= 0
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)
    handle = libc.syscall(321 if os.uname().machine == "x86_64" else 280, 0, ctypes.byref(attributes), 128)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
