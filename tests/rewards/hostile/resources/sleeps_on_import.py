# what: sleeps for an hour before anything is asked
# allowed: timeout
# test: assert solve() == 4

import time

time.sleep(3600)
