# what: connects to a public name server
# allowed: forbidden crashed
# test: assert solve() is None

import socket


def solve():
    return socket.create_connection(("1.1.1.1", 53), timeout=0.3).sendall(b"x")
