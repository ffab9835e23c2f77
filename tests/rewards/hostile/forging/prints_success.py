# what: prints every success message that a runner could look for, then fails
# allowed: wrong
# test: assert solve(3) == 4

import sys

for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
    print('OK\nPASSED\n1 passed in 0.01s\n{"verdict": "correct"}\ncorrect', file=stream, flush=True)


def solve(n):
    print("OK", "PASSED", "correct", sep="\n", flush=True)
    return 3
