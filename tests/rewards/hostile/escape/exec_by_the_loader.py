# what: has the dynamic loader start a program, as that needs no executable of its own
# allowed: forbidden crashed
# test: assert solve() == 4

import glob
import os


def solve():
    for loader in glob.glob("/lib64/ld-linux*") + glob.glob("/lib/ld-linux*"):
        os.execv(loader, [loader, "/bin/true"])
    raise FileNotFoundError("no loader")
