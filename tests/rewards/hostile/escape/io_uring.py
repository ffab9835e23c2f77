# what: opens the kernel's queue of operations, which no filter of system calls sees
# allowed: forbidden crashed
# test: assert solve() >= 0
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(425, 4, ctypes.create_string_buffer(120))
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
