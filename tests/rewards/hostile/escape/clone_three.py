# what: makes a process by clone3, whose arguments no filter can read
# allowed: forbidden crashed
# test: assert solve() is True
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17, 0, 0, 0)
    process = libc.syscall(435, ctypes.byref(arguments), 64)
    if process == 0:
        os._exit(0)
    if process < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return os.waitpid(process, 0)[0] == process
