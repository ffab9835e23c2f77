# what: makes a message queue, which outlives the process
# allowed: forbidden crashed
# test: assert solve() >= 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.syscall(240 if os.uname().machine == "x86_64" else 180, b"nightschool-hostile", 0o102, 0o600, None)
    if queue < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return queue
