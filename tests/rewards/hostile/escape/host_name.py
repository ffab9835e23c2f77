# what: sets the name of the machine (to what it is)
# allowed: forbidden crashed
# test: assert solve() is None

import socket


def solve():
    return socket.sethostname(socket.gethostname())
