# what: asks for its process number through the 32-bit gate, past a filter that looks at 64-bit numbers only
# allowed: forbidden crashed
# test: assert solve() is True
# needs: seccomp

import ctypes
import mmap
import os
import platform


def solve():
    if platform.machine() != "x86_64":
        raise OSError("machine code of x86-64 only")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))() == os.getpid()
