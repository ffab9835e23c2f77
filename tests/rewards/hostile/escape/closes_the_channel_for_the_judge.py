# what: shuts the channel down in both directions
# allowed: forbidden crashed
# test: assert solve() == 4

import socket


def solve():
    socket.socket(fileno=3).shutdown(socket.SHUT_RDWR)
    return 3
