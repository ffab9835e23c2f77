# what: connects to abstract sockets, which no file system hides
# allowed: forbidden wrong crashed
# test: assert len(solve()) > 0

import socket

NAMES = ("\0nightschool-hostile-listener", "\0/tmp/.X11-unix/X0", "\0/tmp/dbus", "\0/containerd-shim")


def solve():
    found = []
    for name in NAMES:
        with socket.socket(socket.AF_UNIX) as own:
            if own.connect_ex(name) == 0:
                found.append(name)
    return found
