# what: connects to the sockets of the machine's services
# allowed: forbidden wrong crashed
# test: assert len(solve()) > 0

import socket

PATHS = ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "/dev/log")


def solve():
    found = []
    for path in PATHS:
        with socket.socket(socket.AF_UNIX) as own:
            if own.connect_ex(path) == 0:
                found.append(path)
    return found
