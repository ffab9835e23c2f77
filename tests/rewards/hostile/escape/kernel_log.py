# what: reads the messages of the kernel
# allowed: forbidden crashed
# test: assert solve() > 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    size = libc.klogctl(3, ctypes.create_string_buffer(4096), 4096)
    if size < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return size
