# what: sends an open descriptor to the judge over the channel
# allowed: forbidden wrong crashed
# test: assert solve() == 4

import array
import socket


def solve():
    channel = socket.socket(fileno=3)
    channel.sendmsg([b"\x00"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    return 3
