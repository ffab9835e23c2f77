# what: resolves a name, which sends it over the network
# allowed: forbidden crashed
# test: assert len(solve()) > 0

import socket


def solve():
    return socket.getaddrinfo("example.com", 80)
