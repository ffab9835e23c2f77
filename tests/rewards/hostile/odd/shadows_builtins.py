# what: variables and helpers that are named like builtins and modules
# allowed: correct
# test: assert solve([3, 1, 2]) == [1, 2, 3]
# test: assert sorted(solve([2, 1])) == [1, 2] and len(solve([1])) == 1

list = None
math = 4
id = type = input = 0


def len(values):
    return 99


def sorted(values):
    values = values[:]
    values.sort()
    return values


def solve(str):
    return sorted(str)
