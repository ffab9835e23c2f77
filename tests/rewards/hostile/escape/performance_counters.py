# what: opens a counter of the processor
# allowed: forbidden crashed
# test: assert solve() >= 0
# needs: seccomp

import ctypes
import os
import struct


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(struct.pack("<IIQ", 1, 128, 1) + struct.pack("<QQQQ", 0, 0, 0, 0x60), 128)
    number = 298 if os.uname().machine == "x86_64" else 241
    handle = libc.syscall(number, attributes, 0, -1, -1, 0)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
