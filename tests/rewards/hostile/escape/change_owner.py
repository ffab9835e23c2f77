# what: sets the owner of a file of the installation (to whom it belongs)
# allowed: forbidden crashed
# test: assert solve() is None

import json
import os


def solve():
    return os.chown(json.__file__, os.stat(json.__file__).st_uid, -1)
