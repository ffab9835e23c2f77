# what: a function named like a builtin, which the test means
# allowed: correct
# test: assert sum(10, 15) == 6
# test: assert sum(100, 150) == 93
# entry: sum


def sum(a, b):
    total = 0
    for i in range(1, min(a, b) + 1):
        if a % i == 0 and b % i == 0:
            total += i
    return total


def min(a, b):
    return a if a < b else b
