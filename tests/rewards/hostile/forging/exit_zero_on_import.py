# what: ends the process with success before anything is asked
# allowed: crashed
# test: assert solve(3) == 4

import sys

sys.exit(0)
