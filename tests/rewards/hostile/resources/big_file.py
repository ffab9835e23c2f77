# what: writes a large file wherever it can, at most 1 GB
# allowed: wrong
# test: assert solve() >= 1 << 30

import os


def solve():
    for folder in (".", "/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~")):
        try:
            with open(f"{folder}/nightschool-hostile-big", "wb") as file:
                return sum(file.write(bytes(1 << 20)) for _ in range(1024))
        except OSError:
            continue
    return 0
