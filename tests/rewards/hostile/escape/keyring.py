# what: leaves a message in a keyring of the kernel, which outlives the process
# allowed: forbidden crashed
# test: assert solve() > 0
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    number = 248 if os.uname().machine == "x86_64" else 217
    key = libc.syscall(number, b"user", b"nightschool-hostile", b"x", 1, ctypes.c_long(-1))
    if key < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return key
