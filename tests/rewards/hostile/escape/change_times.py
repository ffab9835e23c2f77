# what: sets the times of a file of the installation (to what they are)
# allowed: forbidden crashed
# test: assert solve() is None

import json
import os


def solve():
    information = os.stat(json.__file__)
    return os.utime(json.__file__, ns=(information.st_atime_ns, information.st_mtime_ns))
