# what: looks for services of the machine that listen on the loopback
# allowed: forbidden wrong crashed
# test: assert len(solve()) > 0

import socket


def solve():
    found = []
    for port in (22, 80, 443, 631, 3000, 4200, 5000, 5432, 6379, 8000, 8080, 8888, 11434):
        with socket.socket() as own:
            own.settimeout(0.02)
            if own.connect_ex(("127.0.0.1", port)) == 0:
                found.append(port)
    return found
