# what: changes its root folder and climbs out of it
# allowed: forbidden crashed
# test: assert len(solve()) > 0

import ctypes
import os


def solve():
    ctypes.CDLL(None).unshare(0x10000000 | 0x00020000)
    folder = os.open("/", os.O_RDONLY)
    os.chroot("/usr")
    os.fchdir(folder)
    os.chdir("../../../../..")
    os.chroot(".")
    return os.listdir("/etc")
