# what: makes its function from a text
# allowed: correct
# test: assert solve(3) == 4

exec("def make(k):\n    return eval(f'lambda n: n + {k}')")
solve = make(1)  # noqa
