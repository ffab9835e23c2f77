# what: positional-only, keyword-only, default and star arguments
# allowed: correct
# test: assert solve(1, 2, 3, factor=2) == 12
# test: assert solve(1) == 1
# test: assert solve(*[1, 2], **{"factor": 3, "more": 4}) == 13


def solve(first, /, *others, factor=1, **more):
    return (first + sum(others)) * factor + sum(more.values())
