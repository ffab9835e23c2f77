# what: opens a file by the number of its inode, past every path
# allowed: forbidden crashed
# test: assert solve() >= 0

import ctypes
import os
import struct


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    folder = os.open("/", os.O_RDONLY)
    number = 304 if os.uname().machine == "x86_64" else 265
    handle = libc.syscall(number, folder, struct.pack("<Iiii", 8, 1, 2, 0), 0)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
