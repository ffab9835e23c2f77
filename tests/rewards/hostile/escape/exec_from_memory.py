# what: puts a program in memory and executes it there
# allowed: forbidden crashed
# test: assert solve() == 4

import os


def solve():
    descriptor = os.memfd_create("nightschool-hostile")
    os.write(descriptor, b"#!/bin/true\n")
    os.execve(descriptor, ["true"], {})
