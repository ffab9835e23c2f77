# what: mounts a file system over a folder, with the rights of a user namespace of its own
# allowed: forbidden crashed
# test: assert solve() == 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(0x10000000 | 0x00020000)
    if libc.mount(b"none", b"/usr", b"tmpfs", 0, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return 0
