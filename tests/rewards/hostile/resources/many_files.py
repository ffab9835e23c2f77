# what: files in every folder that takes them, at most 1,000 of one byte
# allowed: wrong
# test: assert solve() > 0

import os


def solve():
    made = 0
    for folder in (".", "/tmp", "/dev/shm", "/var/tmp", "/run", "/dev", os.path.expanduser("~")):
        for number in range(140):
            try:
                with open(f"{folder}/nightschool-hostile-{number}", "w") as file:
                    file.write("x")
                made += 1
            except OSError:
                break
    return made
