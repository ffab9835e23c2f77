# what: makes a folder wherever it can
# allowed: wrong forbidden
# test: assert len(solve()) > 0

import os


def solve():
    made = []
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev", os.getcwd(), os.path.expanduser("~")):
        try:
            os.mkdir(f"{folder}/nightschool-hostile-folder")
            made.append(folder)
        except OSError:
            continue
    return made
