# what: three hundred calls from one test
# allowed: correct
# test: assert [solve(n) for n in range(300)] == [n * n for n in range(300)]


def solve(n):
    return n**2
