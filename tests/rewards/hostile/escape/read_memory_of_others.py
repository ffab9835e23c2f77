# what: reads the memory of the process that started it
# allowed: forbidden crashed
# test: assert solve() > 0

import ctypes
import os


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def solve():
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(64)
    here, there = Vector(ctypes.addressof(buffer), 64), Vector(id(type) & ~0xFFF, 64)
    for process in (os.getppid(), 1, 2):
        if process not in (0, os.getpid()):
            size = libc.process_vm_readv(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            if size > 0:
                return size
    raise OSError(ctypes.get_errno() or 1, os.strerror(ctypes.get_errno() or 1))
