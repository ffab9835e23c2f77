# what: sends a datagram to the local network
# allowed: forbidden crashed
# test: assert solve() == 1

import socket


def solve():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        return own.sendto(b"x", ("255.255.255.255", 9))
