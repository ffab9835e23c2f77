# what: maps machine code of its own and runs it: it may, but gains nothing by it
# allowed: forbidden crashed wrong
# test: assert solve() == 40
# seconds: 1

import ctypes
import mmap
import platform


def solve():
    if platform.machine() != "x86_64":
        raise OSError("machine code of x86-64 only")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x04\x00\x00\x00\xc3")
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
