# what: lists home folders, mounts and what else lies on the machine
# allowed: wrong
# test: assert len(solve()) > 0

import os
import sys


def solve():
    found = []
    for folder in ("/home", "/srv", "/mnt", "/media", "/opt", "/boot", "/var", "/etc/ssl/private", "/run", "/data"):
        try:
            found += set(os.listdir(folder)) - set(sys.base_prefix.split("/"))  # where Python lies is shown
        except OSError:
            continue
    return found
