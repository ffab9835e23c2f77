# what: floats that are right within the test's tolerance
# allowed: correct
# test: assert abs(solve(2) - 1.41421356) < 1e-6
# test: assert math.isclose(solve(2), 1.41421356, rel_tol=1e-6)
# test: assert round(solve(2), 2) == 1.41


def solve(n):
    guess = n
    for _ in range(30):
        guess = (guess + n / guess) / 2
    return guess
