# what: sends a datagram to every node of the link
# allowed: forbidden crashed
# test: assert solve() == 1

import socket


def solve():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as own:
        return own.sendto(b"x", ("ff02::1", 9))
