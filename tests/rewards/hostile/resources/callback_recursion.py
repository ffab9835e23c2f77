# what: the judge's function calls the candidate's and so on without end
# allowed: crashed timeout wrong out_of_memory
# test: assert solve(lambda n: solve(f)) == 4
# setup: def f(x):
# setup:     return solve(f)


def solve(call):
    return call(call)
