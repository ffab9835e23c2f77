# what: announces a reply of 16 MB on every descriptor and sends it byte by byte, so that it is never idle
# allowed: timeout wrong crashed
# test: assert solve() == 4

import os
import time


def solve():
    for descriptor in range(3, 16):
        try:
            os.write(descriptor, b"\x00\xf0\x00\x00")
        except OSError:
            continue
    while True:
        time.sleep(0.002)
        for descriptor in range(3, 16):
            try:
                os.write(descriptor, b" ")
            except OSError:
                continue
