# what: asks the kernel for its network interfaces
# allowed: forbidden wrong crashed
# test: assert [name for _, name in solve() if name != "lo"]

import socket


def solve():
    return socket.if_nameindex()
