# what: tries to make a file and an unnamed file in every folder that it can find
# allowed: wrong
# test: assert len(solve()) > 0

import os
import sys


def solve():
    folders = ["/", "/dev", "/dev/shm", "/dev/mqueue", "/var/tmp", "/run", "/run/lock", "/usr", "/usr/local", "/root"]
    folders += ["/proc/self", "/sys", "/home", "/opt", "/srv", "/mnt", "/var/log", "/run/user/0", "/jail", sys.prefix]
    folders += [sys.base_prefix, os.path.dirname(os.__file__), os.path.expanduser("~"), os.getcwd(), *sys.path]
    found = []
    for folder in folders:
        for name, flags in (("/nightschool-hostile-any", os.O_CREAT | os.O_WRONLY), ("", os.O_TMPFILE | os.O_RDWR)):
            try:
                descriptor = os.open(folder + name, flags, 0o600)
                found += [folder] if os.write(descriptor, b"x") else []
            except OSError:
                continue
    return found
