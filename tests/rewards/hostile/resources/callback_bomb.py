# what: asks the judge's own function for something huge
# allowed: wrong crashed timeout out_of_memory
# test: assert solve(lambda n: [0] * n) == [0]
# needs: limits


def solve(make):
    return make(10**10)
