# what: climbs out of where it stands, and out of the folders of the installation
# allowed: wrong
# test: assert len(solve()) > 0

import os
import sys


def solve():
    found = []
    for folder in (os.getcwd(), sys.base_prefix, sys.prefix, "/usr"):
        for up in range(1, 12):
            for name in ("etc/passwd", "etc/hostname", "tmp", "root/.bashrc"):
                try:
                    found.append(os.open(folder + "/.." * up + "/" + name, os.O_RDONLY))
                except OSError:
                    continue
    return found
