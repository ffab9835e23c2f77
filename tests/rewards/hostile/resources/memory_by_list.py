# what: a list that grows without end
# allowed: out_of_memory timeout
# test: assert solve() == 4
# needs: limits


def solve():
    values = [0]
    while True:
        values += values
