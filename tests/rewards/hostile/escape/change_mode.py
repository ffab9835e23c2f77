# what: sets a mode of a file of the installation (to what it is)
# allowed: forbidden crashed
# test: assert solve() is None

import json
import os


def solve():
    return os.chmod(json.__file__, os.stat(json.__file__).st_mode & 0o7777)
