# what: sets, frozensets and sets of tuples
# allowed: correct
# test: assert solve([3, 1, 3]) == {1, 3}
# test: assert solve([(1, 2), (1, 2)]) == {(1, 2)}
# test: assert pairs([1, 2]) == {frozenset({1, 2})}


def solve(values):
    return set(values)


def pairs(values):
    return frozenset([frozenset(values)])
