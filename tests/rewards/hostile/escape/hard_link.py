# what: links a file of the installation to a place of its own
# allowed: wrong forbidden
# test: assert len(solve()) > 0

import json
import os


def solve():
    made = []
    for folder in (".", "/tmp", "/dev/shm", os.path.dirname(json.__file__)):
        try:
            os.link(json.__file__, f"{folder}/nightschool-hostile-link")
            made.append(folder)
        except OSError:
            continue
    return made
