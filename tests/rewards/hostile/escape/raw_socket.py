# what: listens to every frame of the network
# allowed: forbidden crashed
# test: assert solve() > 0

import socket


def solve():
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300).fileno()
