# what: pushes a command into the terminal that the run was started from
# allowed: forbidden crashed
# test: assert solve() == 0

import fcntl
import os


def solve():
    for descriptor in (0, 1, 2):
        if os.isatty(descriptor):
            return fcntl.ioctl(descriptor, 0x5412, b" ") and 0
    return fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b" ") and 0
