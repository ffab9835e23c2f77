# what: a list of 20,000 elements and a text of 100,000 characters as arguments
# allowed: correct
# test: assert solve(list(range(20_000)), "x" * 100_000) == 199990000 + 100_000


def solve(values, text):
    return sum(values) + len(text)
