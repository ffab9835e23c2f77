# what: hides a message for the next program in an extended attribute
# allowed: forbidden crashed
# test: assert solve() is None

import json
import os


def solve():
    return os.setxattr(json.__file__, "user.nightschool-hostile", b"x")
