# what: sets the times of the null device (to what they are), in which a message could lie for the next program
# allowed: forbidden crashed
# test: assert solve() is None

import os


def solve():
    information = os.stat("/dev/null")
    return os.utime("/dev/null", ns=(information.st_atime_ns, information.st_mtime_ns))
