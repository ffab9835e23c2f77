# what: an endless loop before anything is asked
# allowed: timeout
# test: assert solve() == 4

while True:
    pass
