# what: calls the hypervisor of a virtual machine
# allowed: forbidden crashed
# test: assert solve() is None

import socket


def solve():
    own = socket.socket(40, socket.SOCK_STREAM)
    own.settimeout(0.3)
    return own.connect((2, 1024))
