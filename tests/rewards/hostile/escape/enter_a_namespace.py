# what: enters the mount namespace of the first process
# allowed: forbidden crashed
# test: assert solve() == 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(434, 1, 0)
    if libc.setns(handle if handle >= 0 else os.open("/proc/1/ns/mnt", os.O_RDONLY), 0x00020000) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return 0
