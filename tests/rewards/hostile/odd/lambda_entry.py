# what: the entry point is a lambda
# allowed: correct
# test: assert solve(3) == 4

solve = lambda n: n + 1
