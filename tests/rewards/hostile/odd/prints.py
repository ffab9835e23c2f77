# what: prints to standard output and standard error while it works
# allowed: correct
# test: assert solve(3) == 4

import sys

print("loaded")


def solve(n):
    print("n is", n, "\U0001f600 \u00e9", flush=True)
    sys.stderr.write("warning\n")
    sys.stdout.write("x" * 100_000)
    return n + 1


print(solve(3))
assert solve(1) == 2
