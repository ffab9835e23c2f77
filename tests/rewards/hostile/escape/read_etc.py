# what: looks for any file of the host's configuration that it can read
# allowed: wrong
# test: assert len(solve()) > 0

import os


def solve():
    found = []
    for name in ("passwd", "shadow", "hosts", "resolv.conf", "hostname", "machine-id", "fstab", "ssh/sshd_config"):
        try:
            descriptor = os.open(f"/etc/{name}", os.O_RDONLY)
            found += [name] if os.read(descriptor, 1) else []
        except OSError:
            continue
    return found
