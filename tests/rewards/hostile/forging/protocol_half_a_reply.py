# what: sends half a reply and ends
# allowed: crashed wrong
# test: assert solve(3) == 4

import os


def solve(n):
    os.write(3, b'\x00\x00\x00\x0c["value"')
    os._exit(0)
