# what: makes a process by clone, in namespaces of its own, not by fork
# allowed: forbidden crashed
# test: assert solve() is True
# needs: seccomp

import ctypes
import os


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    process = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) if os.uname().machine == "x86_64" else os.fork()
    if process == 0:
        os._exit(0)
    if process < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return os.waitpid(process, 0)[0] == process
