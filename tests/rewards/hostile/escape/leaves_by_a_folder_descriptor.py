# what: climbs from any descriptor of a folder to the root above it
# allowed: wrong
# test: assert len(solve()) > 0

import os


def solve():
    for descriptor in range(0, 1024):
        try:
            return os.listdir(os.open("../../../../../../../../etc", os.O_RDONLY, dir_fd=descriptor))
        except OSError:
            continue
    return []
