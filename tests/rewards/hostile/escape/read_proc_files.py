# what: reads what /proc tells about the machine, its mounts and its processes
# allowed: wrong
# test: assert len(solve()) > 0

import os

NAMES = "self/maps self/mountinfo self/cgroup mounts cpuinfo meminfo version cmdline net/tcp kallsyms 1/cmdline"


def solve():
    found = []
    for name in NAMES.split():
        try:
            with open(f"/proc/{name}", "rb") as file:
                found += [name] if file.read(1) else []
        except OSError:
            continue
    try:
        found += os.listdir("/proc")
    except OSError:
        pass
    return found
